package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

var execs = regexp.MustCompile(`execs: (\d+)`)

// fuzzDecoders gives each target its part of the time. What fails is printed with the input that does it.
func fuzzDecoders(targets []target, limit time.Duration) error {
	share := max(limit/time.Duration(max(len(targets), 1)), time.Second)
	for _, t := range targets {
		cmd := exec.Command(t.bin, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+share.String(),
			"-test.fuzzcachedir="+filepath.Join(t.dir, "cache"))
		cmd.Dir = t.dir
		text, err := cmd.CombinedOutput()
		if !bytes.Contains(text, []byte("Failing input")) && bytes.Contains(text, []byte("context deadline exceeded")) {
			err = nil // so go test ends where a worker is late to hear that the time is up
		}
		if err != nil {
			inputs, _ := exec.Command("sh", "-c", "for f in testdata/fuzz/"+t.name+"/*; do echo \"$f:\"; cat \"$f\"; done").CombinedOutput()
			return fmt.Errorf("%s %s: %w\n%s\nto try it again, put the last of these into %s/testdata/fuzz/%s:\n%s", t.pkg, t.name, err, text, t.pkg, t.name, bytes.TrimSpace(inputs))
		}
		n := 0
		for _, m := range execs.FindAllSubmatch(text, -1) {
			n, _ = strconv.Atoi(string(m[1]))
		}
		fmt.Printf("fuzz: %s %s, %v: %d inputs\n", t.pkg, t.name, share, n)
	}
	return nil
}
