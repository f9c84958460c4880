// Package processor has Perfetto's own trace_processor read what weft writes, for tests.
package processor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Env names the program, trace_processor_shell.
const Env = "WEFT_TEST_TRACE_PROCESSOR"

// Path is the program; "": none is named.
func Path() string { return os.Getenv(Env) }

// patience is how long a question may take.
const patience = 5 * time.Minute

// Ask loads a trace and returns the rows of a query, which has one column of texts.
func Ask(ctx context.Context, trace, query string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	file := filepath.Join(filepath.Dir(trace), "query.sql")
	if err := os.WriteFile(file, []byte(query), 0o600); err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Path(), "-q", file, trace)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s\n%s", cmd, err, query, stderr.Bytes())
	}
	var rows []string
	for line := range strings.Lines(stdout.String()) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			rows = append(rows, strings.Trim(line, `"`))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no answer to\n%s\n%s", cmd, query, stderr.Bytes())
	}
	return rows[1:], nil // the first is the column's name
}
