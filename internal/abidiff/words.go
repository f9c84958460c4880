package abidiff

import (
	"fmt"
	"strings"

	"weft/gen/lock"
	"weft/gen/model"
)

// words says what became of a member.
func words(c *lock.Change) string {
	switch {
	case c.Value():
		return valueWords(c)
	case c.Kind == lock.Added:
		return placed(c.New)
	case c.Kind == lock.Removed:
		return placed(c.Old)
	case c.Old.Func() != nil && c.New.Func() != nil:
		if says := functionWords(c); says != "" {
			return says
		}
	case c.Kind == lock.Respelled:
		return fmt.Sprintf("%s, was %s", c.New.Spelling(), c.Old.Spelling())
	case c.Retyped():
		return fmt.Sprintf("%s, was %s", field(c.New), field(c.Old))
	}
	return fmt.Sprintf("from %d to %d", c.Old.Offset, c.New.Offset)
}

func valueWords(c *lock.Change) string {
	switch c.Kind {
	case lock.Added:
		return number(c.New)
	case lock.Removed:
		return number(c.Old)
	}
	return fmt.Sprintf("%s, was %s", number(c.New), number(c.Old))
}

func number(l *lock.Line) string { return fmt.Sprint(l.Offset) }

// placed is a member's type and place, a function's as that of a call.
func placed(l *lock.Line) string {
	if f := l.Func(); f != nil {
		return fmt.Sprintf("%s at %d", prototype(f), l.Offset)
	}
	return field(l)
}

func field(l *lock.Line) string {
	return fmt.Sprintf("%s, %s at %d", l.Spelling(), plural(l.Size, "byte"), l.Offset)
}

// prototype is a function's parameters, and its result where it is not the usual one.
func prototype(f *model.Func) string {
	_, params, _ := strings.Cut((&model.Type{Kind: model.Pointer, Size: 8, Elem: &model.Type{Kind: model.Function, Func: f}}).String(), "(*)")
	if f.Result.Name == "ncclResult_t" {
		return params
	}
	return f.Result.String() + " " + params
}

// wholeWords says what of a type changed beside its members and its size.
func wholeWords(c *lock.Change) string {
	if c.Old == nil || c.New == nil {
		return ""
	}
	if c.Old.Func() != nil && c.New.Func() != nil {
		return functionWords(c)
	}
	align := func(l *lock.Line) string {
		_, a, _ := strings.Cut(l.Type, " align ")
		return a
	}
	kind := func(l *lock.Line) string {
		k, _, _ := strings.Cut(l.Type, " ")
		return k
	}
	switch {
	case kind(c.Old) == "typedef" && kind(c.New) == "typedef":
		return fmt.Sprintf("%s, was %s", c.New.Spelling(), c.Old.Spelling())
	case kind(c.Old) != kind(c.New):
		return fmt.Sprintf("%s, was %s", c.New.Type, c.Old.Type)
	case align(c.Old) != align(c.New):
		return fmt.Sprintf("aligned to %s, was to %s", align(c.New), align(c.Old))
	}
	return ""
}

// functionWords says how a function changed: what it takes more, what is gone,
// what is of another type, and what is only called otherwise.
func functionWords(c *lock.Change) string {
	params, result := c.Params()
	var says []string
	if result != nil {
		says = append(says, fmt.Sprintf("returns %s, was %s", result.After, result.Before))
	}
	fresh := map[*model.Param]bool{}
	for _, p := range params {
		if p.Kind == lock.Added {
			fresh[p.New] = true
		}
	}
	says = append(says, gains(c.New.Func(), fresh)...)
	var gone []string
	for _, p := range params {
		switch {
		case p.Kind == lock.Removed:
			gone = append(gone, p.Old.Type.Declare(p.Old.Name))
		case p.Kind == lock.Changed && p.Before == p.After:
			says = append(says, called(p.New)+" is at another place")
		case p.Kind == lock.Changed:
			says = append(says, fmt.Sprintf("%s is %s, was %s", called(p.New), p.After, p.Before))
		case p.Kind == lock.Respelled && p.Old.Name != p.New.Name:
			says = append(says, fmt.Sprintf("%s is called %s", called(p.Old), called(p.New)))
		}
	}
	if len(gone) > 0 {
		says = append(says, "no longer takes "+strings.Join(gone, ", "))
	}
	if f, g := c.Old.Func(), c.New.Func(); f.Variadic != g.Variadic {
		says = append(says, map[bool]string{true: "takes any number of further arguments", false: "takes no further arguments"}[g.Variadic])
	}
	return strings.Join(says, "; ")
}

// gains tells the new parameters, those side by side together.
func gains(f *model.Func, fresh map[*model.Param]bool) (says []string) {
	for i := 0; i < len(f.Params); i++ {
		var run []string
		for ; i < len(f.Params) && fresh[f.Params[i]]; i++ {
			run = append(run, f.Params[i].Type.Declare(f.Params[i].Name))
		}
		switch {
		case len(run) == 0:
		case i < len(f.Params):
			says = append(says, fmt.Sprintf("takes %s too, before %s", strings.Join(run, ", "), called(f.Params[i])))
		default:
			says = append(says, fmt.Sprintf("takes %s too, last", strings.Join(run, ", ")))
		}
	}
	return says
}

func called(p *model.Param) string {
	if p.Name == "" {
		return "a parameter without a name"
	}
	return p.Name
}
