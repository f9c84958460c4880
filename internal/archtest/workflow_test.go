package archtest

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestWorkflow reads the workflow of maintainers: each target of make that it calls is there, and no job may write to the repository.
func TestWorkflow(t *testing.T) {
	const file = ".github/workflows/maintain.yml"
	var w struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Limit int `yaml:"timeout-minutes"`
			Steps []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" || len(w.Jobs) == 0 {
		t.Errorf("permissions %v, %d jobs", w.Permissions, len(w.Jobs))
	}
	var makefiles strings.Builder
	for _, f := range list(t) {
		if f == "Makefile" || strings.HasPrefix(f, "mk/") {
			makefiles.WriteString(read(t, f))
		}
	}
	calls := regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	called := 0
	for name, job := range w.Jobs {
		if job.Limit == 0 {
			t.Errorf("%s: the job %s has no limit", file, name)
		}
		for _, step := range job.Steps {
			if step.Run == "" && step.Uses == "" {
				t.Errorf("%s: the step %q of %s does nothing", file, step.Name, name)
			}
			for _, m := range calls.FindAllStringSubmatch(step.Run, -1) {
				called++
				if !strings.Contains(makefiles.String(), "\n"+m[1]+":") {
					t.Errorf("%s: %s calls make %s, which does not exist", file, name, m[1])
				}
			}
		}
	}
	if called < 6 {
		t.Errorf("%d calls of make", called)
	}
}
