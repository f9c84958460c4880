package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// result is what one step, or all of them, came to.
type result struct {
	Name                    string
	Passed, Failed, Skipped int
	Seconds                 float64
}

func (r result) String() string {
	s := fmt.Sprintf("%s: %d passed, %d failed", r.Name, r.Passed, r.Failed)
	if r.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	return s + fmt.Sprintf(" (%.1f s)", r.Seconds)
}

// append adds the result to the file; without a file nothing is kept.
func (r result) append(file string) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// totals are the results of all steps.
type totals struct {
	steps []result
	all   result
}

// sum reads the results file; status is how make ended.
func sum(file string, status int) (*totals, error) {
	if file == "" {
		return nil, errors.New("-summary: WEFT_RESULTS names no file")
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // no file: nothing was run
		return nil, err
	}
	t := &totals{}
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		var r result
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		t.steps = append(t.steps, r)
		t.all.Passed += r.Passed
		t.all.Failed += r.Failed
		t.all.Skipped += r.Skipped
		t.all.Seconds += r.Seconds
	}
	if status != 0 && t.all.Failed == 0 {
		t.steps = append(t.steps, result{Name: "a step that could not be run", Failed: 1})
		t.all.Failed = 1
	}
	return t, nil
}

// table lists the steps; the last line is the summary, alone and plain.
func (t *totals) table() string {
	var b strings.Builder
	for _, r := range t.steps {
		mark := "ok  "
		if r.Failed > 0 {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, r)
	}
	if t.all.Skipped > 0 {
		fmt.Fprintf(&b, "%d skipped\n", t.all.Skipped)
	}
	fmt.Fprintf(&b, "%d passed, %d failed", t.all.Passed, t.all.Failed)
	return b.String()
}
