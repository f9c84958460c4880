package release

import (
	"reflect"
	"testing"
)

// Each thing that releases do and others do not is told, once.
func TestBehavioursAreTold(t *testing.T) {
	all := releases(t)
	course := func(does func(*Release) bool) (s string) {
		for _, r := range all {
			s += map[bool]string{true: "1", false: "0"}[does(r)]
		}
		return s
	}
	told := map[string]int{}
	for _, b := range Behaviours {
		told[course(b.Does)]++
	}
	typ := reflect.TypeFor[*Release]()
	n := 0
	for m := range typ.Methods() {
		if does, is := m.Func.Interface().(func(*Release) bool); is {
			n++
			if told[course(does)]--; told[course(does)] < 0 {
				t.Errorf("what %s tells is not in Behaviours", m.Name)
			}
		}
	}
	if n == 0 || n != len(Behaviours) {
		t.Errorf("%d behaviours, of which %d are told", n, len(Behaviours))
	}
}
