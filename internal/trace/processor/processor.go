// Package processor has Perfetto's own trace_processor read what weft writes, for tests.
package processor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Env names the program, trace_processor_shell.
const Env = "WEFT_TEST_TRACE_PROCESSOR"

// Path is the program; "": none is named.
func Path() string { return os.Getenv(Env) }

// patience is how long a question may take.
const patience = 5 * time.Minute

// Ask loads a trace and returns the rows of each query, which has one column, named row.
func Ask(ctx context.Context, trace string, queries []string) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// One answer, for the trace is loaded once then, and older versions give only one.
	var all []string
	for i, q := range queries {
		all = append(all, fmt.Sprintf("select '%d:' || row as row from (%s)", i, q))
	}
	query := strings.Join(all, "\nunion all\n")
	file := filepath.Join(filepath.Dir(trace), "query.sql")
	if err := os.WriteFile(file, []byte(query), 0o600); err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Path(), "-q", file, trace)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	head, body, _ := strings.Cut(stdout.String(), "\n")
	if err != nil || head != `"row"` {
		return nil, fmt.Errorf("%s: %v, no answer to\n%s\n%s", cmd, err, query, stderr.Bytes())
	}
	answers := make([][]string, len(queries))
	for line := range strings.Lines(body) {
		n, row, _ := strings.Cut(strings.Trim(strings.TrimSpace(line), `"`), ":")
		i, err := strconv.Atoi(n)
		if err != nil || i >= len(queries) {
			return nil, fmt.Errorf("%s: a row of no query: %s", cmd, line)
		}
		answers[i] = append(answers[i], row)
	}
	return answers, nil
}
