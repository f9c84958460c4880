package link

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make builds is asked of make, so that no recipe puts a program beside the libraries.
func TestProgramsAreNotAmongLibraries(t *testing.T) {
	cmd := exec.Command("make", "-n", "DIST=/d", "dist", "bench-lab")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	recipe, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, recipe)
	}
	dist, built := Dist("/d"), 0
	for _, field := range strings.Fields(string(recipe)) {
		if !strings.HasPrefix(field, "/d/") {
			continue
		}
		built++
		if dir := filepath.Dir(field); dir == dist.Libraries() || dir == "/d" {
			t.Errorf("make writes %s: dlopen(%q) would find it there", field, filepath.Base(field))
		}
	}
	if built == 0 {
		t.Errorf("make names no program:\n%s", recipe)
	}
	if dir := filepath.Dir(dist.Program("weft")); dir == dist.Libraries() {
		t.Errorf("programs lie among the libraries, in %s", dir)
	}
}
