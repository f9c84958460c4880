package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// statement is one of a function's body, or the head of one that others follow: if, for, while, switch.
type statement struct {
	line   int // on which it ends
	tokens []string
}

// statements are those in the bodies of the functions of a C file.
func statements(text string) (all []statement) {
	const structure, function, literal = 's', 'f', 'l'
	var open []rune // braces around
	var now []string
	parens := 0
	end := func(line int) {
		if len(now) > 0 && slices.Contains(open, function) {
			all = append(all, statement{line, now})
		}
		now = nil
	}
	for _, t := range cTokens(text) {
		inside := len(open) > 0 && open[len(open)-1] == literal
		switch {
		case t.text == "{" && (parens > 0 || inside || slices.Contains(now, "=")):
			open, now = append(open, literal), append(now, t.text)
		case t.text == "{":
			kind := function
			if first := slices.DeleteFunc(slices.Clone(now), func(w string) bool { return w == "static" || w == "typedef" }); len(first) > 0 &&
				slices.Contains([]string{"struct", "union", "enum", "extern"}, first[0]) && !slices.Contains(now, "(") {
				kind = structure
			}
			open, now = append(open, rune(kind)), nil
		case t.text == "}" && inside:
			open, now = open[:len(open)-1], append(now, t.text)
		case t.text == "}":
			now = nil
			if len(open) > 0 && open[len(open)-1] == structure {
				now = []string{"struct"} // names of that type may follow
			}
			open = open[:max(len(open)-1, 0)]
		case t.text == ";" && parens == 0 && !inside:
			end(t.line)
		case t.text == ":" && parens == 0 && len(now) > 0 && (now[0] == "case" || now[0] == "default" || len(now) == 1):
			now = nil
		case t.text == "else" || t.text == "do":
			now = nil
		default:
			now = append(now, t.text)
			switch t.text {
			case "(":
				parens++
			case ")":
				if parens--; parens == 0 && slices.Contains([]string{"if", "for", "while", "switch"}, now[0]) {
					end(t.line)
				}
			}
		}
	}
	return all
}

// chain reports whether s is several with commas between them. A comma may stand between what a declaration declares, between
// arguments or values, and in the head of a for.
func (s statement) chain() bool {
	var open []int // brackets around, by their places
	closed := 0    // that of the bracket which closed last
	lists := map[int]bool{}
	for i, t := range s.tokens {
		switch t {
		case "(", "[", "{":
			lists[i] = t == "{" || t == "(" && i > 0 && (calls(s.tokens[:i]) || s.tokens[i-1] == ")" && (lists[closed] || !cast(s.tokens[closed+1:i-1])))
			open = append(open, i)
		case ")", "]", "}":
			if len(open) > 0 {
				closed, open = open[len(open)-1], open[:len(open)-1]
			}
		case ",":
			if len(open) == 0 && !declares(s.tokens) || len(open) > 0 && !lists[open[len(open)-1]] {
				return true
			}
		}
	}
	return false
}

// calls reports whether a parenthesis after these tokens holds arguments.
func calls(before []string) bool {
	last := before[len(before)-1]
	if last == "(" { // __attribute__((f(1, 2), g))
		return len(before) > 1 && before[len(before)-2] == "__attribute__"
	}
	return last == "]" || word(last) && !slices.Contains([]string{"if", "while", "switch", "return", "sizeof", "case"}, last)
}

// cast reports whether what stands in a parenthesis is a type: (*f)(y, z) and (p->f)(y, z) are calls.
func cast(inside []string) bool {
	return len(inside) > 0 && word(inside[0]) && !slices.ContainsFunc(inside, func(t string) bool { return !word(t) && t != "*" })
}

func declares(tokens []string) bool {
	if slices.Contains([]string{"static", "const", "extern", "volatile", "struct", "union", "enum", "unsigned", "goto", "int", "char", "long", "__thread", "_Alignas"}, tokens[0]) {
		return true
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] != "*" {
			return word(tokens[0]) && word(tokens[i]) && tokens[0] != "return"
		}
	}
	return false
}

func word(t string) bool { return unicode.IsLetter(rune(t[0])) || t[0] == '_' }

type cToken struct {
	text string
	line int
}

// cTokens leaves out comments and the preprocessor's lines; a literal is one token.
func cTokens(text string) (all []cToken) {
	line, begin := 1, true // begin: of a line
	for i := 0; i < len(text); {
		rest := text[i:]
		n := 1
		switch c := text[i]; {
		case c == '\n':
			begin = true
		case c == ' ' || c == '\t':
		case strings.HasPrefix(rest, "/*"):
			n = strings.Index(rest, "*/") + 2
		case strings.HasPrefix(rest, "//"):
			n = strings.Index(rest, "\n")
		case c == '#' && begin:
			for n = strings.Index(rest, "\n"); rest[n-1] == '\\'; n += 1 + strings.Index(rest[n+1:], "\n") {
			}
		case c == '"' || c == '\'':
			for n = 1; rest[n] != c; n++ {
				if rest[n] == '\\' {
					n++
				}
			}
			n++
			all = append(all, cToken{string(c), line})
		case word(rest) || unicode.IsDigit(rune(c)):
			for n = 1; n < len(rest) && (word(rest[n:]) || unicode.IsDigit(rune(rest[n]))); n++ {
			}
			all = append(all, cToken{rest[:n], line})
		default:
			all = append(all, cToken{rest[:1], line})
		}
		if begin && text[i] != '\n' && text[i] != ' ' && text[i] != '\t' {
			begin = false
		}
		line += strings.Count(text[i:i+n], "\n")
		i += n
	}
	return all
}

func ofC(f string) bool {
	return slices.Contains([]string{".c", ".h", ".inc"}, path.Ext(f)) && !generated(f) && !testdata(f) && !strings.HasPrefix(f, "headers/") &&
		path.Dir(f) != "tools/simgpu/player" // C++
}

func TestStatementsOfC(t *testing.T) {
	text := `/* no; statement; */
#define TWO a; \
	b;
struct s { int a; int b; };
static const struct s table[] = {{1, 2}, {3, 4}};
int f(int a, struct s* p) {
	struct s x = {.a = 1, .b = 2}, y;
	if (a) return 1;
	else if (p->a) g("; \"{", ';');
	for (int i = 0; i < 3; i++) a += i;
	do a--;
	while (a);
	switch (a) {
	case 1: a = 2; break;
	default:
		a = (struct s){1, 2}.a, x = y;
	}
	if (a++, x.a < a) h((a, 3), g(1, 2));
	for (int i = 0, k = 3; i < k; i++, k--) (*p->f)(1, 2);
	int z = (a = 2, 4), u __attribute__((nonstring, aligned(8)));
	(void)(a++, a);
	while ((*p = 1) && g(a, (struct s){1, 2})) p->f[1](1, (int)h(a, 2));
	return a = 3, a;
}
`
	var got []string
	var chains []int
	for _, s := range statements(text) {
		got = append(got, strings.Join(s.tokens, " "))
		if s.chain() {
			chains = append(chains, s.line)
		}
	}
	if len(got) != 22 {
		t.Errorf("%d statements: %q", len(got), got)
	}
	if !slices.Equal(chains, []int{16, 18, 18, 20, 21, 23}) {
		t.Errorf("chains on lines %v", chains)
	}
}

// Code that can be read aloud: one statement after the other, in lines that a window holds.
func TestCIsPlain(t *testing.T) {
	for _, f := range list(t) {
		if !ofC(f) {
			continue
		}
		text := read(t, f)
		for _, s := range statements(text) {
			if s.chain() {
				t.Errorf("%s:%d: several statements with commas between them: %s", f, s.line, strings.Join(s.tokens, " "))
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if n := len([]rune(strings.ReplaceAll(line, "\t", "    "))); n > 120 {
				t.Errorf("%s:%d: %d columns, at most 120 are allowed", f, i+1, n)
			}
		}
	}
}
