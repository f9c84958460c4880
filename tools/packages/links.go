package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// linked is a link of a page, or code, in which nothing is one.
var linked = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|" + `\[([^\]\n]*)\]\(([^)\s]+)\)`)

// leadsTo is the file that a link of the page leads to; "" for a place in the page itself or elsewhere.
func leadsTo(page, link string) string {
	to, _, _ := strings.Cut(link, "#")
	if to == "" || strings.Contains(to, ":") {
		return ""
	}
	return path.Join(path.Dir(page), to)
}

// unlink has the pages among the files say of what only the sources have that it is there, where they link to it.
func unlink(all []entry, made string) error {
	packed := map[string]bool{}
	for _, e := range all {
		packed[e.path] = true
	}
	for i, e := range all {
		if path.Ext(e.path) != ".md" {
			continue
		}
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		all[i].source = filepath.Join(made, strings.ReplaceAll(e.path, "/", "-"))
		said := linked.ReplaceAllStringFunc(string(text), func(link string) string {
			m := linked.FindStringSubmatch(link)
			if to := leadsTo(e.path, m[2]); to == "" || packed[to] {
				return link
			}
			return m[1] + " (in the sources)"
		})
		if err := os.WriteFile(all[i].source, []byte(said), 0o644); err != nil {
			return err
		}
	}
	return nil
}
