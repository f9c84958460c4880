package knob

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/knobs.md")

func TestNumbersReadAsC(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"16", 16, true}, {"0x10", 16, true}, {"0X0f", 15, true}, {"010", 8, true}, {" 4\n", 4, true},
		{"+4", 4, true}, {"-2", -2, true}, {"0", 0, true}, {"0xb", 11, true},
		{"2147483648", 0, false}, {"-1", 0, false}, {"abc", 0, false}, {"4x", 0, false}, {"0b11", 0, false},
		{"0o7", 0, false}, {"1_0", 0, false}, {"09", 0, false}, {"+-4", 0, false},
		{"99999999999999999999", 0, false}, {" ", 0, false},
	} {
		v := Parse(map[string]string{"NCCL_SOCKET_NTHREADS": c.text})
		if !c.ok {
			if v.Int(SocketNThreads) != -2 || v.Origin(SocketNThreads) != Rejected || len(v.Problems()) != 1 {
				t.Errorf("%q: value %d, origin %v, problems %q", c.text, v.Int(SocketNThreads), v.Origin(SocketNThreads), v.Problems())
			}
			continue
		}
		if v.Int(SocketNThreads) != c.want || v.Origin(SocketNThreads) != FromEnvironment || len(v.Problems()) != 0 {
			t.Errorf("%q: value %d, origin %v, problems %q", c.text, v.Int(SocketNThreads), v.Origin(SocketNThreads), v.Problems())
		}
	}
}

func TestSwitches(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "0x0": 0, "1": 1, "2": 1, "-1": 1, "0x7fffffffffffffff": 1} {
		if v := Parse(map[string]string{"NCCL_IB_MERGE_NICS": text}); v.Int(IBMergeNICs) != want || v.Origin(IBMergeNICs) != FromEnvironment {
			t.Errorf("%s: %d, %v", text, v.Int(IBMergeNICs), v.Origin(IBMergeNICs))
		}
	}
	v := Parse(map[string]string{"NCCL_IB_MERGE_NICS": "off"})
	if d := cmp.Diff([]string{"NCCL_IB_MERGE_NICS=off: must be 0 (off) or another number (on); using the default 1"}, v.Problems()); d != "" || v.Int(IBMergeNICs) != 1 {
		t.Error(v.Int(IBMergeNICs), d)
	}
}

func TestLines(t *testing.T) {
	v := Parse(map[string]string{
		"NCCL_SOCKET_NTHREADS":   "many",
		"NCCL_SOCKET_FAMILY":     "AF_UNIX",
		"NCCL_SOCKET_TOS_CONFIG": "256",
		"NCCL_SOCKET_MAGIC":      "0xffffffffffffffff",
		"NCCL_SOCKET_IFNAME":     "eth\n0",
		"NCCL_SOCKET_RCVBUF":     "",
		"WEFT_TIMEOUT":           "0",
		"WEFT_PORT_RANGE":        "4000-4100",
		"WEFT_TIMOUT":            "3",
		"NCCL_SOCKET_IFNMAE":     "eth0",
		"NCCL_IB_HCAS":           "mlx5_0",
		"NCCL_NVB_DISABLE":       "1",
		"NCCL_P2P_DISABLE":       "1",
		"NCCL_DEBUG":             "INFO",
		"WEFT_TEST_DIST":         "x",
		"WEFT_RUN_TOKEN":         "x",
		"WEFT_SIMVERBS":          "{}",
		"WEFT_SIMVERBS_NODE":     "x",
		"WEFT_PROFILE_SIZE":      "8M",
		"WEFTX":                  "3",
		"PATH":                   "/bin",
	})
	wantProblems := []string{
		"NCCL_SOCKET_FAMILY=AF_UNIX: must be AF_INET or AF_INET6; using the default (unset)",
		"NCCL_SOCKET_NTHREADS=many: must be -2 or 0 to 2147483647; using the default -2",
		"NCCL_SOCKET_TOS_CONFIG=256: must be -1 or 0 to 255; using the default -1",
		"WEFT_TIMEOUT=0: must be 1 to 3600 seconds; using the default 10 s",
		"WEFT_PROFILE_SIZE=8M: must be 2 to 65536 MiB; using the default 64 MiB",
		"NCCL_IB_HCAS is not a variable that weft or NCCL's networks read; did you mean NCCL_IB_HCA?",
		"NCCL_SOCKET_IFNMAE is not a variable that weft or NCCL's networks read; did you mean NCCL_SOCKET_IFNAME?",
		"WEFT_TIMOUT is not a knob of weft and is ignored; did you mean WEFT_TIMEOUT?",
	}
	if d := cmp.Diff(wantProblems, v.Problems()); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
	wantNotes := []string{
		`NCCL_SOCKET_IFNAME set by environment to "eth\n0"`,
		"NCCL_SOCKET_MAGIC=0xffffffffffffffff is accepted and changes nothing here: every listen draws a secret token of its own, and a peer proves that it knows it",
		"WEFT_PORT_RANGE set by environment to 4000-4100",
	}
	if d := cmp.Diff(wantNotes, v.Notes()); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	if lo, hi := v.Ports(PortRange); lo != 4000 || hi != 4100 {
		t.Errorf("ports %d-%d", lo, hi)
	}
	if v.Seconds(Timeout) != 10*time.Second || v.Text(SocketIfname) != "eth\n0" || v.Int(SocketRcvBuf) != -1 {
		t.Error("values are wrong")
	}
	if v.Origin(SocketRcvBuf) != FromDefault || v.Int(SocketMagic) != -1 {
		t.Error("origin or bits are wrong")
	}
}

// A key is no secret any more once it is in a log.
func TestKeysAreNotShown(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	v := Parse(map[string]string{"NCCL_PSK": key})
	if p := v.Problems(); len(p) != 1 || !strings.HasPrefix(p[0], "NCCL_PSK is set for encrypted connections, and weft's are not") {
		t.Errorf("%q", p)
	}
	if text := strings.Join(append(v.Problems(), v.Notes()...), " "); strings.Contains(text, key[:4]) {
		t.Errorf("the key is shown: %s", text)
	}
	if p := Parse(map[string]string{"NCCL_PSK": ""}).Problems(); len(p) != 0 {
		t.Errorf("unset: %q", p)
	}
}

// ncclDefaults is what NCCL 2.32 takes for its variables where none is set; "" is no value.
var ncclDefaults = map[string]string{
	"SOCKET_IFNAME": "", "SOCKET_FAMILY": "", "COMM_ID": "", "SOCKET_NTHREADS": "-2", "NSOCKS_PERTHREAD": "-2", "SOCKET_INLINE": "128",
	"SOCKET_MIN_TASKSIZE": "65536", "SOCKET_RETRY_CNT": "34", "SOCKET_RETRY_SLEEP_MSEC": "100", "SOCKET_POLL_TIMEOUT_MSEC": "0",
	"SOCKET_RCVBUF": "-1", "SOCKET_SNDBUF": "-1", "SOCKET_MAGIC": "0x564ab9f2fc4b9d6c", "SOCKET_TOS_CONFIG": "-1",
	"IB_DISABLE": "0", "IB_HCA": "", "IBVERBS_LIB": "", "IB_GID_INDEX": "-1", "IB_ROUTABLE_FLID_GID_INDEX": "1", "IB_ROCE_VERSION_NUM": "2",
	"IB_ADDR_FAMILY": "AF_INET", "IB_ADDR_RANGE": "", "IB_SUBNET_AWARE_ROUTING": "0", "IB_SUBNET_PREFIX_LEN": "24", "IB_TIMEOUT": "20",
	"IB_RETRY_CNT": "7", "IB_PKEY": "0", "IB_PKEY_VALUE": "-1", "IB_SL": "-1", "IB_TC": "-1", "IB_FIFO_TC": "-1", "IB_USE_INLINE": "0", "IB_QPS_PER_CONNECTION": "1",
	"IB_SPLIT_DATA_ON_QPS": "0", "IB_ADAPTIVE_ROUTING": "-2", "IB_AR_THRESHOLD": "-2", "IB_OOO_RQ": "0",
	"IB_RECEIVER_SIDE_MATCHING_SCHEME": "-2", "IB_PREPOST_RECEIVE_WORK_REQUESTS": "-2", "IB_ECE_ENABLE": "1", "IB_PCI_RELAXED_ORDERING": "2",
	"IB_DATA_DIRECT": "1", "IB_MERGE_VFS": "1", "IB_MERGE_NICS": "1", "IB_DEVICE_PCI_ORDER": "1", "IB_WARN_RAIL_LOCAL": "0",
	"IB_QUERY_PORT_SPEED": "1", "IB_RETURN_ASYNC_EVENTS": "1", "IB_MQP_RETRY_ALL": "0", "IB_MQP_RETRY_CNT": "34",
	"IB_MQP_RETRY_SLEEP_MSEC": "100", "GDR_FLUSH_DISABLE": "0", "IB_EVENT_BASED_LB": "0", "IB_EVENT_BASED_LB_REMOTE": "1",
	"IB_RAIL_POLICY": "CX9", "IB_SORT_MERGE_NICS": "1", "IB_WQE_LATENCY_THRESHOLD_NS": "0", "IB_WQE_LATENCY_REPORT": "1", "IB_RESILIENCY_PORT_FAILOVER": "0",
	"IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS": "1", "IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY": "10", "IB_RESILIENCY_PORT_RECOVERY": "0",
	"IB_RESILIENCY_PORT_RECOVERY_START_DELAY": "200", "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL": "500",
	"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE": "5", "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE": "5",
	"IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT": "4000", "IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT": "5000", "IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX": "20",
}

// Every variable of NCCL's networks is a row, with NCCL's default unless the row
// says why not; the text about NCCL begins with its default where that is a number.
func TestDefaultsAreNCCLs(t *testing.T) {
	otherwise := map[string]string{
		"NCCL_IB_USE_INLINE":   "1",
		"NCCL_IB_AR_THRESHOLD": "8192", // what -2 stands for
	}
	rest := maps.Clone(ncclDefaults)
	for _, s := range All() {
		theirs, ok := ncclDefaults[strings.TrimPrefix(s.Name, "NCCL_")]
		delete(rest, strings.TrimPrefix(s.Name, "NCCL_"))
		if s.Theirs == "" {
			continue
		}
		ours := theirs
		if o, differs := otherwise[s.Name]; differs {
			ours = o
		}
		got := s.DefaultText()
		if s.Type == Text || s.Type == Choice { // unset; what that stands for is in the text
			got, ours = "", ""
		}
		if !ok || got != ours {
			t.Errorf("%s: %q here, %q there (listed %v)", s.Name, s.DefaultText(), theirs, ok)
		}
		if begins := strings.TrimRight(strings.Fields(s.Theirs)[0], ".,;:"); theirs != "" && begins != theirs && s.Name != "NCCL_SOCKET_TOS_CONFIG" {
			t.Errorf("%s: %q does not begin with %q", s.Name, s.Theirs, theirs)
		}
	}
	for name := range rest {
		t.Errorf("NCCL_%s is no row", name)
	}
}

// RCCL's other name counts where NCCL's is unset, and is told by its own name.
func TestOtherNames(t *testing.T) {
	const name, also = "NCCL_IBVERBS_LIB", "NCCL_LIBIBVERBS_SO"
	for _, c := range []struct {
		env        map[string]string
		text, from string
	}{
		{nil, "", ""},
		{map[string]string{name: "a"}, "a", name},
		{map[string]string{also: "b"}, "b", also},
		{map[string]string{name: "", also: "b"}, "b", also},
		{map[string]string{name: "a", also: "b"}, "a", name},
	} {
		v := Parse(c.env)
		if v.Text(IBVerbsLib) != c.text || v.Name(IBVerbsLib) != c.from || len(v.Problems()) > 0 || len(v.Notes()) > 0 != (c.from != "") ||
			c.from != "" && v.Notes()[0] != c.from+" set by environment to "+c.text {
			t.Errorf("%v: %q by %q, %q, %q", c.env, v.Text(IBVerbsLib), v.Name(IBVerbsLib), v.Problems(), v.Notes())
		}
	}
}

// Each number is taken at both ends of its range, and one beyond is a warning and the default.
func TestRanges(t *testing.T) {
	for id, s := range All() {
		if s.Type != Number && s.Type != Seconds {
			continue
		}
		legal := append([]int64{s.Min, s.Max}, s.Special...)
		for n, ok := range map[int64]bool{s.Min: true, s.Max: true, s.Min - 1: slices.Contains(legal, s.Min-1), s.Max + 1: false} {
			v := Parse(map[string]string{s.Name: strconv.FormatInt(n, 10)})
			want, lines := n, 0
			if !ok {
				want, lines = s.Default, 1
			}
			if v.Int(ID(id)) != want || len(v.Problems()) != lines {
				t.Errorf("%s=%d: %d, %q", s.Name, n, v.Int(ID(id)), v.Problems())
			}
		}
		for _, n := range s.Special {
			if v := Parse(map[string]string{s.Name: strconv.FormatInt(n, 10)}); v.Int(ID(id)) != n || v.Problems() != nil {
				t.Errorf("%s=%d: %d, %q", s.Name, n, v.Int(ID(id)), v.Problems())
			}
		}
	}
}

func TestPorts(t *testing.T) {
	for text, ok := range map[string]bool{
		"4000": true, "1-65535": true, " 5-6 ": true, "0-5": false, "6-5": false, "65536": false, "-": false, "a-b": false, "1-2-3": false,
	} {
		v := Parse(map[string]string{"WEFT_PORT_RANGE": text})
		lo, hi := v.Ports(PortRange)
		if got := len(v.Problems()) == 0; got != ok || got != (lo > 0 && lo <= hi) {
			t.Errorf("%q: ports %d-%d, problems %q", text, lo, hi, v.Problems())
		}
	}
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for id, s := range All() {
		if s.Name == "" || s.Doc == "" || seen[s.Name] {
			t.Errorf("row %d: name %q missing, twice, or without doc", id, s.Name)
		}
		if own := strings.HasPrefix(s.Name, "WEFT_"); own != (s.Theirs == "") || own && s.Differs != "" {
			t.Errorf("%s: says of NCCL %q and of the difference %q", s.Name, s.Theirs, s.Differs)
		}
		seen[s.Name] = true
		if s.Type == Number || s.Type == Seconds {
			if !s.allows(s.Default) {
				t.Errorf("%s: default %d is not legal", s.Name, s.Default)
			}
		}
		if s.Type == Switch && (s.Default < 0 || s.Default > 1) {
			t.Errorf("%s: default %d", s.Name, s.Default)
		}
		if s.Type == Choice && len(s.Choices) == 0 {
			t.Errorf("%s: no choices", s.Name)
		}
		if Nearest(s.Name) != s.Name || Lookup(ID(id)).Name != s.Name {
			t.Errorf("%s is not nearest to itself", s.Name)
		}
	}
}

// A group's rows are disjoint from the others': the one that is written last would win unseen.
func TestEveryRowHasOnePlace(t *testing.T) {
	if n := len(socketRows) + len(ibRows) + len(resiliencyRows) + len(ownRows); n != int(count) {
		t.Errorf("%d rows for %d knobs", n, count)
	}
	for _, f := range foreigns {
		for _, n := range f.names {
			for name := range strings.SplitSeq(n.name, ", ") {
				if known(name) {
					t.Errorf("%s is weft's and %q", name, f.reader)
				}
			}
		}
	}
}

func TestDocsFollowTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "knobs.md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(Markdown()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Markdown(), string(have)); d != "" {
		t.Errorf("docs/knobs.md is stale; go test ./internal/knob -update (-want +got):\n%s", d)
	}
}

func FuzzParseEnv(f *testing.F) {
	for _, s := range []string{"", "0", "-2", "0x", "1_000", "9223372036854775808", "4000-4100", "AF_INET6", "\x00\xff\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings := map[string]string{"WEFT_" + text: text}
		for _, s := range All() {
			settings[s.Name] = text
		}
		v := Parse(settings)
		for id, s := range All() {
			id := ID(id)
			if v.Origin(id) == Rejected && !slices.ContainsFunc(v.Problems(), func(p string) bool { return strings.HasPrefix(p, s.Name+"=") }) {
				t.Errorf("%s=%q rejected without a line", s.Name, text)
			}
			if (s.Type == Number || s.Type == Seconds) && !s.allows(v.Int(id)) {
				t.Errorf("%s=%q gives %d", s.Name, text, v.Int(id))
			}
			if v.Origin(id) == Rejected && v.Int(id) != s.Default {
				t.Errorf("%s=%q rejected, yet %d", s.Name, text, v.Int(id))
			}
		}
		for _, line := range append(v.Problems(), v.Notes()...) {
			if strings.ContainsAny(line, "\n\r\x00") {
				t.Errorf("a line holds control characters: %q", line)
			}
		}
	})
}
