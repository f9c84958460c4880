package hca

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/transport/rdma"
)

func TestHCAGrammar(t *testing.T) {
	ports := []string{"mlx5_0:1", "mlx5_1:1", "mlx5_1:2", "mlx5_10:1", "rxe0:1"}
	for _, c := range []struct{ text, want string }{
		{"", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 rxe0:1"},
		{"mlx5", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1"},
		{"mlx5_1", "mlx5_1:1 mlx5_1:2 mlx5_10:1"},
		{"=mlx5_1", "mlx5_1:1 mlx5_1:2"},
		{"=mlx5_1:2", "mlx5_1:2"},
		{"^mlx5_1:2", "mlx5_0:1 mlx5_1:1 mlx5_10:1 rxe0:1"},
		{"^=mlx5_1", "mlx5_0:1 mlx5_10:1 rxe0:1"},
		{"=^mlx5_1", ""},
		{"^mlx5", "rxe0:1"},
		{"^", ""},
		{"=", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 rxe0:1"},
		{",,rxe0,,", "rxe0:1"},
		{"rxe0:0", ""},
		{"rxe0:x", ""},
		{"rxe0:-1", "rxe0:1"},
		{"rxe0: 1", "rxe0:1"},
		{"rxe0:1x", "rxe0:1"},
		{"rxe0:", "rxe0:1"},
		{":1", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 rxe0:1"},
		{"rxe0:1:5:7", "rxe0:1(5,7)"},
		{"rxe0::5", "rxe0:1(5,-1)"},
		{"rxe0:::7:8:9", "rxe0:1(-1,7)"},
		{"rxe,rxe0:1:5:7", "rxe0:1"},
		{"^mlx5:1:2:3", "mlx5_1:2 rxe0:1"},
		{"rxe0:1:70000:16384", "rxe0:1"},
	} {
		f, _ := Parse(c.text)
		var got []string
		for _, p := range ports {
			name, port, _ := strings.Cut(p, ":")
			rail, plane, ok := f.Takes(name, int(port[0]-'0'))
			if !ok {
				continue
			}
			if rail != rdma.NoID || plane != rdma.NoID {
				p += fmt.Sprintf("(%d,%d)", rail, plane)
			}
			got = append(got, p)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: %s, want %s", c.text, s, c.want)
		}
	}
}

func TestHCALimits(t *testing.T) {
	f, problems := Parse(strings.Repeat("a,", 32) + "rxe0,b")
	if len(f.entries) != 32 || len(problems) != 1 || !strings.Contains(problems[0], `"rxe0"`) {
		t.Errorf("%d entries, %q", len(f.entries), problems)
	}
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("m%d:::%d", i, i), fmt.Sprintf("n%d:::%d", i, i))
	}
	f, problems = Parse(strings.Join(many, ","))
	if len(problems) != 2 || f.entries[23].plane != 11 || f.entries[24].plane != rdma.NoID {
		t.Errorf("planes: %q, %v", problems, f.entries[22:])
	}
}

// The laws: never a panic, at most 32 entries, ids in range, and an excluding
// list takes exactly what the same list without the mark does not.
func FuzzHCA(f *testing.F) {
	for _, s := range []string{"", "^=mlx5_0:1:2:3,rxe", "=^a", "a:::", "a:-1:99999999999:x", strings.Repeat("q,", 40)} {
		f.Add(s, "mlx5_0", 1)
	}
	f.Fuzz(func(t *testing.T, text, name string, port int) {
		plain, _ := Parse(text)
		if len(plain.entries) > maxEntries {
			t.Fatalf("%d entries", len(plain.entries))
		}
		if slices.ContainsFunc(plain.entries, func(e entry) bool { return e.name == "" || e.plane < rdma.NoID || e.plane >= planeLimit }) {
			t.Fatalf("entries %v", plain.entries)
		}
		if strings.HasPrefix(text, "^") {
			return
		}
		not, _ := Parse("^" + text)
		_, _, a := plain.Takes(name, port)
		rail, plane, b := not.Takes(name, port)
		if a == b || rail != rdma.NoID || plane != rdma.NoID {
			t.Fatalf("%q takes %s:%d %v, ^ of it %v with rail %d plane %d", text, name, port, a, b, rail, plane)
		}
	})
}
