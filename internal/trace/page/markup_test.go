package page_test

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft/internal/trace/page"
	"weft/internal/trace/summary"
)

// node is an element of a page; its name is empty for a text.
type node struct {
	name       string
	attributes map[string]string
	text       string
	children   []*node
}

func write(t *testing.T, r *summary.Report) string {
	t.Helper()
	var b strings.Builder
	if err := page.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parse reads a page, which is written so that it is well-formed XML too.
func parse(t *testing.T, text string) *node {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	root := &node{name: "page"}
	open := []*node{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatalf("byte %d: %v", d.InputOffset(), err)
		}
		in := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				n.attributes[a.Name.Local] = a.Value
			}
			in.children = append(in.children, n)
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				in.children = append(in.children, &node{text: text})
			}
		case xml.Comment:
			t.Errorf("a comment: %q", token)
		}
	}
}

// walk visits a node and what is in it.
func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, c := range n.children {
		c.walk(visit)
	}
}

// all are the elements of that name.
func (n *node) all(name string) []*node {
	var found []*node
	n.walk(func(c *node) {
		if c.name == name {
			found = append(found, c)
		}
	})
	return found
}

// words are the texts in a node.
func (n *node) words() string {
	var all []string
	n.walk(func(c *node) {
		if c.text != "" {
			all = append(all, c.text)
		}
	})
	return strings.Join(all, " ")
}

// The elements and attributes that the layout has. A page with another got it from a file.
var elements = strings.Fields(`page html head meta title style body header p nav a main section h1 h2 h3 ul li strong details summary code div
	figure figcaption table thead tbody tr th td svg desc g rect text line`)

var attributes = strings.Fields(`lang charset http-equiv content name id class href role tabindex scope open aria-label aria-labelledby
	x y x1 x2 y1 y2 dx dy width height viewBox transform stroke-width`)

// check returns the page's tree, in which everything is the layout's and leads nowhere.
func check(t *testing.T, text string) *node {
	t.Helper()
	root := parse(t, text)
	ids := map[string]bool{}
	root.walk(func(n *node) {
		if n.name == "" {
			return
		}
		if !slices.Contains(elements, n.name) {
			t.Errorf("an element %q: %q", n.name, n.words())
		}
		for _, a := range slices.Sorted(maps.Keys(n.attributes)) {
			if !slices.Contains(attributes, a) {
				t.Errorf("<%s> has %s=%q", n.name, a, n.attributes[a])
			}
		}
		if to, is := n.attributes["href"]; is && !strings.HasPrefix(to, "#") {
			t.Errorf("a link leads to %q", to)
		}
		if id := n.attributes["id"]; id != "" {
			if ids[id] {
				t.Errorf("two elements are %q", id)
			}
			ids[id] = true
		}
	})
	for _, svg := range root.all("svg") {
		for _, id := range strings.Fields(svg.attributes["aria-labelledby"]) {
			if !ids[id] {
				t.Errorf("a picture is described by %q, which is not there", id)
			}
		}
		if svg.attributes["role"] != "img" || svg.attributes["aria-labelledby"] == "" {
			t.Errorf("a picture has no text: %v", svg.attributes)
		}
	}
	for _, a := range root.all("a") {
		if to := strings.TrimPrefix(a.attributes["href"], "#"); !ids[to] {
			t.Errorf("a link leads to #%s, which is not there", to)
		}
	}
	for _, from := range []string{"@import", "url(", "src="} {
		if strings.Contains(root.all("style")[0].words(), from) {
			t.Errorf("the style has %q: it may fetch something", from)
		}
	}
	return root
}
