package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every calls f with each command that users see.
func every(c *cobra.Command, f func(c *cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			every(sub, f)
		}
	}
}

// Each command explains itself, on a terminal of 100 columns, and says what it is for in the list of commands.
func TestHelp(t *testing.T) {
	every(weft(), func(c *cobra.Command) {
		var out, errOut bytes.Buffer
		args := append(strings.Fields(c.CommandPath())[1:], "-h")
		if status := execute(t.Context(), args, &out, &errOut); status != 0 || errOut.Len() > 0 {
			t.Errorf("%q: status %d, %q", args, status, &errOut)
		}
		if c.Short == "" || !strings.Contains(out.String(), "usage: "+c.CommandPath()) {
			t.Errorf("%s is for %q and explains itself with\n%s", c.CommandPath(), c.Short, &out)
		}
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimSpace(line)) > 100 {
				t.Errorf("%s -h: %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
	})
}

// A command that is not there, or not given rightly, is refused with what to do instead.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ args, err string }{
		{"doctr", `weft: there is no command "doctr": is it doctor?`},
		{"fly", `weft: there is no command "fly" (weft -h lists them)`},
		{"trace shw x", `weft trace: there is no command "shw": is it show?`},
		{"run --foo", "weft run: unknown flag: --foo (weft run -h explains the flags)"},
		{"run --timeout 5", "write 5s"},
		{"top --every never /tmp", "write 90s"},
		{"run more", `what is "more"?`},
		{"run -c -1", "-c -1: want 0 or more"},
		{"lab", "want a command to run"},
		{"trace", "usage: weft trace COMMAND"},
		{"", "usage: weft COMMAND"},
		{"version 2", "weft version: "},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), strings.Fields(c.args), &out, &errOut); status != 2 || !strings.Contains(errOut.String(), c.err) || out.Len() > 0 {
			t.Errorf("weft %s: status %d, %q, on stderr %q, want %q", c.args, status, &out, &errOut, c.err)
		}
	}
}

// invocation finds the arguments of a command in a line of examples: behind variables, a launcher or another health check, and before
// what is said of it.
var invocation = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S* )*(?:(?:srun|mpirun|torchrun|\* \|\|) (?:.* )?)?(?:\S*/)?weft( [a-z-].*?)?(?:   |\s+\(| \||$)`)

// The commands and flags of all examples are there, in the help and in what the repository's pages show.
func TestExamples(t *testing.T) {
	texts := map[string]string{}
	every(weft(), func(c *cobra.Command) { texts[c.CommandPath()+" -h"] = c.Example })
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fenced := regexp.MustCompile("(?s)```(?:sh)?\n(.*?)```")
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllStringSubmatch(string(b), -1) {
			texts[page] += block[1]
		}
	}
	seen := 0
	for from, text := range texts {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, "; ")
			m := invocation.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			args := strings.Fields(strings.ReplaceAll(m[1], "'", ""))
			if i := strings.Index(m[1], " -- "); i >= 0 {
				args = strings.Fields(m[1][:i]) // what is behind it is another program's
			}
			if err := understood(args); err != nil {
				t.Errorf("%s: %s: %v", from, strings.TrimSpace(line), err)
			}
			seen++
		}
	}
	if seen < 60 {
		t.Errorf("only %d examples were found", seen)
	}
}

// understood says what is wrong with a command line, without carrying it out.
func understood(args []string) error {
	root := weft()
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil && err != pflag.ErrHelp {
		return err
	}
	if c.HasSubCommands() && c.Flags().NArg() > 0 {
		return c.RunE(c, c.Flags().Args())
	}
	return nil
}

// There is a man page for each command, and what a shell is given to complete them is in its language.
func TestPagesAndCompletions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	var out, errOut bytes.Buffer
	if status := execute(t.Context(), []string{"man", dir}, &out, &errOut); status != 0 {
		t.Fatalf("status %d: %s", status, &errOut)
	}
	every(weft(), func(c *cobra.Command) {
		page := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		b, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			return
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !bytes.Contains(bytes.ReplaceAll(b, []byte(`\-`), []byte("-")), []byte("--"+f.Name)) {
				t.Errorf("%s does not tell of --%s", page, f.Name)
			}
		})
	})
	out.Reset()
	if status := execute(t.Context(), []string{"completion", "bash"}, &out, &errOut); status != 0 {
		t.Fatalf("status %d: %s", status, &errOut)
	}
	sh := exec.CommandContext(t.Context(), "bash", "-n")
	sh.Stdin = &out
	if text, err := sh.CombinedOutput(); err != nil {
		t.Errorf("bash does not read its completion: %v\n%s", err, text)
	}
	for _, c := range []struct{ args, want string }{
		{"tr", "trace\t"},
		{"top --sort w", "waits\n"},
		{"doctor --explain WEFT-07", "WEFT-070\t"},
		{"run --coll allr", "allreduce\n"},
	} {
		out.Reset()
		if status := execute(t.Context(), append([]string{"__complete"}, strings.Fields(c.args)...), &out, &errOut); status != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s is completed to\n%s", c.args, &out)
		}
	}
}
