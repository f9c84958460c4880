package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// inside marks the environment of a program that has a network of its own.
const inside = "WEFT_CAMPAIGN_INSIDE"

// apart puts this program into a network and mounts of its own, in which it is root: what it makes there ends with it. It
// starts itself anew for that.
func apart() error {
	if os.Getenv(inside) != "" {
		os.Unsetenv(inside) // weft tells of variables that it does not know
		return errors.Join(do("mount -t tmpfs tmpfs /run"), do("ip link set lo up"))
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return fmt.Errorf("%w: it makes the hosts' networks (Debian: util-linux, iproute2)", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags := "-nm"
	if os.Getuid() != 0 {
		flags = "-Urnm"
	}
	args := append([]string{unshare, flags, self}, os.Args[1:]...)
	return fmt.Errorf("%s: %w", unshare, syscall.Exec(unshare, args, append(os.Environ(), inside+"=1")))
}

// do runs a command, whose words have no spaces.
func do(format string, args ...any) error {
	return doWords(strings.Fields(fmt.Sprintf(format, args...)))
}

func doWords(words []string) error {
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
