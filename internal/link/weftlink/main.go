// Command weftlink builds what make puts into dist: the library with its links, the C host and weft. See package link.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"weft/internal/link"
)

func main() {
	out := flag.String("o", "dist", "folder to write to")
	mode := flag.String("mode", "release", "release, asan (the library and the host under the address sanitizer) or race (the library whole inside the host)")
	second := flag.Bool("second", false, "also build the second Go library that tests load beside ours")
	flag.Parse()
	if err := build(*out, *mode, *second); err != nil {
		fmt.Fprintln(os.Stderr, "weftlink:", err)
		os.Exit(1)
	}
}

func build(out, mode string, second bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	dist := link.Dist(out)
	library := link.Options{Root: root, Out: dist.Library(), Log: os.Stderr}
	host := link.HostOptions{Root: root, Out: dist.Program("weft-host"), Log: os.Stderr}
	for _, file := range []string{library.Out, host.Out} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	switch mode {
	case "release":
	case "asan":
		library.Mode = link.ASan
		host.CFlags = []string{"-fsanitize=address", "-fno-omit-frame-pointer"}
	case "race":
		library.Mode, library.Out = link.RaceArchive, filepath.Join(dist.Libraries(), "libweft.a")
		host.Archive = library.Out
	default:
		return fmt.Errorf("-mode %s: want release, asan or race", mode)
	}
	if err := link.Library(library); err != nil {
		return err
	}
	if err := link.Host(host); err != nil {
		return err
	}
	if second {
		if err := link.Second(root, filepath.Join(dist.Libraries(), "libsecond.so"), os.Stderr); err != nil {
			return err
		}
	}
	if library.Mode == link.RaceArchive {
		return nil
	}
	header := filepath.Join(dist.Libraries(), "libnccl-net-weft.h") // the go command writes it; nobody is to include it
	if err := os.Remove(header); err != nil && !os.IsNotExist(err) {
		return err
	}
	if mode == "release" {
		if err := link.Command(root, dist.Program("weft"), os.Stderr); err != nil {
			return err
		}
	}
	return link.Symlinks(dist.Libraries())
}
