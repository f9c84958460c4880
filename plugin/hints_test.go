package plugin

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// C files of which a program of its own is made, under the sanitizers.
func TestHintsInC(t *testing.T)    { inC(t, "hints") }
func TestRequestsInC(t *testing.T) { inC(t, "requests") }

func inC(t *testing.T, name string) {
	for _, sanitizer := range []string{"thread", "address,undefined"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			program := filepath.Join(t.TempDir(), name)
			out, err := exec.CommandContext(ctx, "gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-I../headers", "-I../transport/fastpath", "-I.",
				"-fsanitize="+sanitizer, "-fno-sanitize-recover=all", "-o", program, "testdata/"+name+".c", name+".c", "-lpthread").CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Fatalf("compile: %v\n%s", err, out)
			}
			if out, err = exec.CommandContext(ctx, program).CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
