package link

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// writeStubs makes empty shared libraries in dir that define exactly the symbols of an allow-list with their glibc 2.28 versions.
// The linker records in what we build what it finds in them, whatever glibc this machine has.
func writeStubs(dir, gcc string, symbols []Symbol) error {
	byLibrary := map[string][]Symbol{}
	for _, s := range symbols {
		byLibrary[s.Library] = append(byLibrary[s.Library], s)
	}
	for library, list := range byLibrary {
		if err := writeStub(dir, library, list, gcc); err != nil {
			return err
		}
	}
	return nil
}

func writeStub(dir, library string, list []Symbol, gcc string) error {
	base, _, _ := strings.Cut(library, ".so")
	source, script, out := filepath.Join(dir, base+".s"), filepath.Join(dir, base+".map"), filepath.Join(dir, base+".so")
	if err := os.WriteFile(source, stubSource(list), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(script, stubScript(list), 0o644); err != nil {
		return err
	}
	cmd := exec.Command(gcc, "-shared", "-nostdlib", "-o", out, source, "-Wl,-soname,"+library, "-Wl,--version-script="+script)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stub of %s: %s: %w\n%s", library, cmd, err, text)
	}
	return nil
}

func stubSource(list []Symbol) []byte {
	var b bytes.Buffer
	for _, s := range list {
		kind, section, size := "%function", ".text", 1
		if s.Size > 0 {
			kind, section, size = "%object", ".data", s.Size
		}
		fmt.Fprintf(&b, "%[1]s\n.globl %[2]s\n.type %[2]s, %[3]s\n.size %[2]s, %[4]d\n%[2]s: .skip %[4]d\n", section, s.Name, kind, size)
	}
	b.WriteString(".section .note.GNU-stack,\"\",%progbits\n")
	return b.Bytes()
}

func stubScript(list []Symbol) []byte {
	byVersion := map[string][]string{}
	for _, s := range list {
		byVersion[s.Version] = append(byVersion[s.Version], s.Name)
	}
	var versions []string
	for v := range byVersion {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	var b bytes.Buffer
	for i, v := range versions {
		local := ""
		if i == 0 {
			local = " local: *;"
		}
		fmt.Fprintf(&b, "%s { global: %s;%s };\n", v, strings.Join(byVersion[v], "; "), local)
	}
	return b.Bytes()
}
