package loads

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// judge says what the findings come to.
func (r *Report) judge(ours string) {
	for _, path := range r.Loaded {
		if same(path, ours) {
			r.Weft, r.Other = path, false
			break
		}
		if strings.Contains(filepath.Base(path), "weft") || r.Table != "" && strings.HasPrefix(filepath.Base(path), "libnccl-net") {
			r.Weft, r.Other = path, true
		}
	}
	if r.Table != "" && r.Weft == "" { // the log is NCCL's own: something of weft spoke through it
		r.Weft = "a file that is not loaded any more"
	}
	switch {
	case r.Table != "" && r.Other:
		r.Verdict = fmt.Sprintf("NCCL %s loads a weft, through %s, but another one than was expected: %s, not %s", r.Release, r.Table, r.Weft, ours)
	case r.Table != "":
		r.OK = true
		r.Verdict = fmt.Sprintf("NCCL %s loads weft and uses it through %s: %s", r.Release, r.Table, r.Weft)
		if r.Failed != "" {
			r.Verdict += fmt.Sprintf("; its communicator failed after that (%s)", r.Failed)
		}
	case r.Made:
		r.Verdict = fmt.Sprintf("NCCL %s made a communicator without weft: it uses %s", r.Release, r.network())
	case len(r.Looked) > 0:
		r.judgeLooked(ours)
	default:
		r.Verdict = fmt.Sprintf("NCCL %s did not come as far as its plugins (%s)", r.Release, r.Failed)
	}
}

// judgeLooked is for an NCCL that failed before it looked for plugins, as it does without a GPU.
func (r *Report) judgeLooked(ours string) {
	last := r.Looked[len(r.Looked)-1]
	limits := fmt.Sprintf("as far as dlopen can tell, for this NCCL itself did not come to its plugins (%s)", r.Failed)
	switch {
	case last.Found == "":
		r.Verdict = fmt.Sprintf("NCCL %s would find no plugin under the names it looks for, %s", r.Release, limits)
	case r.Weft == "":
		r.Verdict = fmt.Sprintf("NCCL %s would load another plugin, %s, %s", r.Release, strings.Join(r.Loaded, " "), limits)
	case r.Other:
		r.Verdict = fmt.Sprintf("NCCL %s would load a weft, but another one than was expected: %s, not %s, %s", r.Release, r.Weft, ours, limits)
	default:
		r.OK = true
		r.Verdict = fmt.Sprintf("NCCL %s would load weft and take %s of it: %s, %s", r.Release, last.Found, r.Weft, limits)
	}
}

// network is the one that NCCL says it uses.
func (r *Report) network() string {
	for _, line := range r.Said {
		if _, name, ok := strings.Cut(line, "Using network "); ok {
			return "its network " + name
		}
	}
	return "one of its own networks"
}

// Text writes the report.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: NCCL %s\n", r.NCCL, r.Release)
	if r.Failed != "" {
		fmt.Fprintf(&b, "failed: %s\n", r.Failed)
	}
	for _, path := range r.Loaded {
		fmt.Fprintf(&b, "loaded: %s\n", path)
	}
	for _, n := range r.Looked {
		if n.Found != "" {
			fmt.Fprintf(&b, "dlopen %s: takes %s\n", n.Name, n.Found)
		} else {
			fmt.Fprintf(&b, "dlopen %s: %s\n", n.Name, n.Error)
		}
	}
	for _, line := range r.Said {
		fmt.Fprintf(&b, "  NCCL %s\n", line)
	}
	fmt.Fprintf(&b, "%s\n", r.Verdict)
	if !r.OK {
		fmt.Fprintf(&b, "weft doctor says what is wrong, and how to mend it\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
