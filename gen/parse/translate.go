package parse

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

//go:embed all:sysroot
var sysroot embed.FS

// Bounds on what is read and how long it may take: a header is a few hundred
// lines, and a hostile one must not hang the build.
const (
	maxBytes     = 4 << 20
	maxOpens     = 1024
	maxExpansion = 1 << 22
	deadline     = 20 * time.Second
)

// predefined is what gcc predefines on LP64 Linux and headers look at.
const predefined = `
#define __STDC__ 1
#define __STDC_VERSION__ 201112L
#define __STDC_HOSTED__ 1
#define __linux__ 1
#define __unix__ 1
#define __LP64__ 1
#define _LP64 1
#define __CHAR_BIT__ 8
#define __SIZEOF_POINTER__ 8
#define __ORDER_LITTLE_ENDIAN__ 1234
#define __ORDER_BIG_ENDIAN__ 4321
#define __BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__
#define __SIZE_TYPE__ unsigned long
#define __PTRDIFF_TYPE__ long
#define __INT8_TYPE__ signed char
#define __INT16_TYPE__ short
#define __INT32_TYPE__ int
#define __INT64_TYPE__ long
#define __UINT8_TYPE__ unsigned char
#define __UINT16_TYPE__ unsigned short
#define __UINT32_TYPE__ unsigned int
#define __UINT64_TYPE__ unsigned long
#define __INTPTR_TYPE__ long
#define __UINTPTR_TYPE__ unsigned long
int __predefined_declarator;
`

var archMacros = map[string]string{
	"amd64": "#define __x86_64__ 1\n",
	"arm64": "#define __aarch64__ 1\n",
}

// tail follows the headers. Some loops of the parser look for a token that ends
// a construct and do not notice the end of the input; here they find one.
var tail = func() string {
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "int __weft_end%d;\nstruct __weft_end%[1]d { int (*f)(int a[1]); enum { __weft_e%[1]d = (1) } e; };\n", i)
	}
	return b.String()
}()

// The folders of the overlay that the parser sees.
const (
	sysDir  = "<sys>"
	unitSrc = "<unit>"
	tailSrc = "<end>"
)

// overlay serves the headers, and the sysroot under sysDir. It remembers the
// order in which files were opened, which is the order of their macros.
type overlay struct {
	headers fs.FS
	system  fs.FS
	opened  map[string]int
	left    int64
	opens   int
}

var errTooMuch = errors.New("headers exceed the limit of 4 MiB or 1024 inclusions")

func (o *overlay) Open(name string) (fs.File, error) {
	if o.opens++; o.opens > maxOpens || o.left <= 0 {
		return nil, errTooMuch
	}
	if rest, ok := strings.CutPrefix(name, sysDir+"/"); ok {
		if o.system != nil {
			if f, err := o.system.Open(rest); err == nil {
				return f, nil
			}
		}
		return sysroot.Open("sysroot/" + rest)
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := o.headers.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if o.left -= st.Size(); o.left < 0 {
		f.Close()
		return nil, errTooMuch
	}
	if _, ok := o.opened[name]; !ok {
		o.opened[name] = len(o.opened)
	}
	return f, nil
}

// translate preprocesses, parses and type-checks the headers of o.
func translate(o Options, over *overlay) (*cc.AST, error) {
	abi, err := cc.NewABI("linux", o.Arch)
	if err != nil {
		return nil, fmt.Errorf("parse headers: %w", err)
	}
	once := map[string]bool{}
	cfg := &cc.Config{
		ABI:             abi,
		FS:              over,
		FSOnly:          true,
		IncludePaths:    []string{"@", sysDir},
		SysIncludePaths: []string{sysDir},
		EvalAllMacros:   true,
		Header:          true,
		UnsignedEnums:   true,
		ExpansionLimit:  maxExpansion,
		PragmaHandler:   func(toks []cc.Token) error { return pragma(toks, once, o.one) },
	}
	var unit strings.Builder
	unit.WriteString("#include <stddef.h>\n")
	for _, h := range o.Headers {
		fmt.Fprintf(&unit, "#include %q\n", path.Clean(h))
	}
	sources := []cc.Source{
		{Name: "<predefined>", Value: predefined + archMacros[o.Arch]},
		{Name: "<prelude>", Value: o.Prelude + "\n"},
		{Name: unitSrc, Value: unit.String()},
		{Name: tailSrc, Value: tail},
	}

	type result struct {
		ast *cc.AST
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{err: Refusals{{Pos: model.Pos{File: strings.Join(o.Headers, " ")}, What: fmt.Sprintf("the C parser gave up: %v", p)}}}
			}
			done <- r
		}()
		r.ast, r.err = cc.Translate(cfg, sources)
		if r.err != nil {
			r.err = fromCC(r.err, o, over)
		}
	}()
	select {
	case r := <-done:
		if over.opens > maxOpens || over.left < 0 {
			return nil, Refusals{{Pos: model.Pos{File: o.Headers[0], Line: 1, Col: 1}, What: errTooMuch.Error() + ": does a header include itself?"}}
		}
		return r.ast, r.err
	case <-time.After(deadline): // the parser's goroutine is abandoned: the process is about to end
		return nil, fmt.Errorf("parse %s: no result after %v", strings.Join(o.Headers, " "), deadline)
	}
}

// pragma honours "once" and refuses the rest: pack changes layouts silently.
func pragma(toks []cc.Token, once map[string]bool, one func(name string) string) error {
	var words []string
	for _, t := range toks {
		if w := strings.TrimSpace(t.SrcStr()); w != "" {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return nil
	}
	at := toks[0].Position()
	if len(words) == 1 && words[0] == "once" {
		name := one(at.Filename)
		if once[name] {
			return cc.SkipSource
		}
		once[name] = true
		return nil
	}
	text := strings.NewReplacer(" ( ", "(", " )", ")", " ,", ",").Replace(strings.Join(words, " "))
	return fmt.Errorf("%s:%d:%d: #pragma %s: only \"once\" is understood", at.Filename, at.Line, at.Column, text)
}

// one gives the name by which a file is known that several names open.
func (o *Options) one(name string) string {
	if f, ok := o.FS.(interface{ One(name string) string }); ok {
		return f.One(name)
	}
	return name
}

func newOverlay(o Options) *overlay {
	return &overlay{headers: o.FS, system: o.System, opened: map[string]int{}, left: maxBytes}
}

// readAll returns a header's text, for its comments.
func (o *overlay) readAll(name string) string {
	f, err := o.headers.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return ""
	}
	return string(b)
}
