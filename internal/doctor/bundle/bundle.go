// Package bundle writes what weft doctor has seen into a file for a ticket, without what is private.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
)

// Folders and files of a bundle.
const (
	Machine = "machine" // what was looked at: weft doctor --root reads it
	Report  = "report.json"
	Text    = "report.txt"
	About   = "README"
)

const about = `Evidence of weft doctor. Names of hosts and users, addresses, hardware addresses
and secrets are replaced, the same by the same; subnets stay subnets.

report.txt, report.json   the report
machine/                  the files that were looked at: weft doctor --root machine
`

// Write writes the evidence of an exam and its report, as tar.gz.
func Write(w io.Writer, x *doctor.Exam, report doctor.Report) error {
	r, err := newRedactor(names(x))
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	t := &archive{tar: tar.NewWriter(zip), made: map[string]bool{}}
	var text bytes.Buffer
	for _, h := range report.Hosts {
		h.Print(&text)
	}
	form, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	t.file(About, []byte(about))
	t.file(Text, []byte(r.text(text.String())))
	t.file(Report, []byte(r.text(string(form))))
	for _, e := range x.Evidence() {
		t.entry(r, e)
	}
	if t.err != nil {
		return t.err
	}
	if err := t.tar.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// names are those of the machine and of its user.
func names(x *doctor.Exam) (hosts, users []string) {
	for _, name := range []string{x.Sysctl("kernel/hostname"), x.Text("/etc/hostname"), x.Env("HOSTNAME"), x.Env("SLURMD_NODENAME")} {
		short, domain, _ := strings.Cut(name, ".")
		hosts = append(hosts, name, short, domain)
	}
	for _, line := range x.Lines("/etc/hosts") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			for _, name := range f[1:] {
				if !strings.HasPrefix(name, "ip6-") && !strings.HasPrefix(name, "localhost") {
					hosts = append(hosts, name)
				}
			}
		}
	}
	if home := x.Env("HOME"); path.Dir(home) == "/home" {
		users = append(users, path.Base(home))
	}
	return hosts, append(users, x.Env("USER"), x.Env("LOGNAME"))
}

type archive struct {
	tar  *tar.Writer
	made map[string]bool
	err  error
}

func (a *archive) entry(r *redactor, e machine.Entry) {
	name := path.Join(Machine, r.text(e.Name))
	switch {
	case e.Link != "":
		a.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: inside(e.Name, r.text(e.Link)), Mode: 0o777})
	case e.Dir:
		a.header(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case e.Name == "/proc/net/route":
		a.file(name, []byte(r.route(string(e.Text))))
	case utf8.Valid(e.Text) && !slices.Contains(e.Text, 0):
		a.file(name, []byte(r.text(string(e.Text))))
	case path.Base(e.Name) == "config":
		a.file(name, e.Text) // of which only Access Control Services are left
	}
}

// inside is a link that stays below the bundle's machine: where an absolute one leads to.
func inside(from, to string) string {
	if !path.IsAbs(to) {
		return to
	}
	return strings.Repeat("../", strings.Count(from, "/")-1) + strings.TrimPrefix(to, "/")
}

func (a *archive) file(name string, text []byte) {
	a.header(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))})
	if a.err == nil {
		_, a.err = a.tar.Write(text)
	}
}

func (a *archive) header(h *tar.Header) {
	if a.err == nil && !a.made[h.Name] {
		a.made[h.Name] = true
		a.err = a.tar.WriteHeader(h)
	}
}
