package skips

import "testing"

func TestAllows(t *testing.T) {
	list, err := Parse("# why\n\na/b Test* needs root\na/b TestDisk no disk %s: %v (%d left)\n")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, c := range []struct {
		pkg, test, said string
		want            bool
	}{
		{"a/b", "TestNet", "    x_test.go:3: needs root\n", true},
		{"a/b", "TestNet/sub/case", "needs root to make namespaces", true},
		{"a/c", "TestNet", "needs root", false},
		{"a/b", "TestNet", "needs luck", false},
		{"a/b", "TestDisk", "no disk sda: broken (7 left)", true},
		{"a/b", "TestDisk/sub", "no disk", false},
		{"a/b", "TestNet", "no disk sda: broken (7 left)", false},
	} {
		got := false
		for _, s := range list {
			got = got || s.Allows(c.pkg, c.test, c.said)
		}
		if got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestList(t *testing.T) {
	if list, err := List(); err != nil || len(list) == 0 {
		t.Error(list, err)
	}
	if _, err := Parse("a/b TestX\n"); err == nil {
		t.Error("a line without a reason is taken")
	}
}
