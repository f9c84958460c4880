package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// vetoed packages do not belong into a library inside somebody else's process, and why.
var vetoed = map[string]string{
	"net/http": "an HTTP server or client lives in the weft command",
	"os/exec":  "a plugin starts no processes",
	"plugin":   "a plugin loads no plugins",
}

// tools build and test the product, and are no part of it.
var tools = []string{"weft/gen", "weft/internal/host", "weft/internal/build", "weft/internal/link", "weft/internal/conns", "weft/internal/hostcalls", "weft/internal/fakeibv", "weft/internal/abidiff"}

func TestLibraryLinksOnlyWhatItMay(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags=netgo,osusergo", "-json=ImportPath,Standard", "./lib")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("%s: %v\n%s", cmd, err, exit.Stderr)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p struct {
			ImportPath string
			Standard   bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if why := vetoed[p.ImportPath]; why != "" {
			t.Errorf("the library links %s; %s", p.ImportPath, why)
		}
		if !p.Standard && !within(p.ImportPath, "weft") && !within(p.ImportPath, "golang.org/x/sys") {
			t.Errorf("the library links %s; only the standard library and golang.org/x/sys may be linked", p.ImportPath)
		}
		if slices.Contains(tools, p.ImportPath) {
			t.Errorf("the library links %s, a tool", p.ImportPath)
		}
	}
	if seen == 0 {
		t.Error("go list named no packages")
	}
}
