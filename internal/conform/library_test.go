package conform

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

// TestMain lets two tests run on each of two CPUs: a third of the time rules wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("4")
	}
	os.Exit(m.Run())
}

// TestLargest moves 1 GiB in one message, once.
func TestLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("2 GiB of memory: not with -short")
	}
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range Judge(Options{Lib: lib, Host: hostProgram(t), Slow: true, Patience: time.Minute, Rules: []string{"size.gib"}}, host.FamilyNet, host.FamilyNet.Newest()) {
		if !x.OK() {
			t.Errorf("%s: %s", x.Label(), x.Fail)
		}
	}
}

// keeps requires every rule of a table, and that each was judged, but for those of what the library does not offer.
func keeps(t *testing.T, o Options, f host.Family, version int) {
	t.Helper()
	for _, x := range Judge(o, f, version) {
		if !x.OK() {
			t.Errorf("%s: %s\ncontract: %s (%s)", x.Label(), x.Fail, x.Rule.Says, x.Rule.Basis)
		} else if x.Skip != "" && (x.Skip != declines || slices.Contains(o.Env, offersCollNet)) {
			t.Errorf("%s: not judged: %s", x.Label(), x.Skip)
		}
	}
}

// offersCollNet makes the library's collNet one that has devices.
const offersCollNet = "WEFT_COLLNET=1"

// TestLibraryCollNet requires every rule of a collNet with devices, where the library is asked to be one.
func TestLibraryCollNet(t *testing.T) {
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Lib: lib, Host: hostProgram(t), Strict: true, Env: []string{offersCollNet, "WEFT_CONNECT_TIMEOUT=10"}}
	first, last := host.FamilyColl.Versions()
	for v := first; v <= last; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			if fewTables() && v != first && v != last {
				t.Skip("the first and the newest stand for all with -short and where the suite runs again")
			}
			keeps(t, o, host.FamilyColl, v)
		})
	}
}

// blocking is the newest net table whose connect and accept block.
const blocking = host.SinceGroups - 1

// TestLibrary requires the built library to keep every rule on every table, those of care too.
func TestLibrary(t *testing.T) {
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Lib: lib, Host: hostProgram(t), Strict: true}
	for _, f := range host.Families() {
		first, last := f.Versions()
		for v := first; v <= last; v++ {
			t.Run(fmt.Sprintf("%s_v%d", f, v), func(t *testing.T) {
				t.Parallel()
				if fewTables() && v != blocking && v != last {
					t.Skip("v4 and the newest stand for all with -short and where the suite runs again")
				}
				keeps(t, o, f, v)
			})
		}
	}
}
