package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/internal/knob"
)

// tcpRules: the kernel's settings for TCP.
var tcpRules = []Rule{
	{
		Code: "WEFT-140", Topic: netTopic, Severity: Advice,
		Title:       "few connections may wait to be accepted",
		Symptom:     "init of a large job takes seconds longer, in steps of 1, 3 and 7",
		Consequence: "what comes at once from many ranks is dropped, and tried again a second later",
		Remedy:      "sysctl -w net.core.somaxconn=4096",
		check: func(x *Exam) []Finding {
			if n, ok := x.Int("/proc/sys/net/core/somaxconn"); ok && n < 1024 {
				return seen("net.core.somaxconn", "/proc/sys/net/core/somaxconn is %d", n).one()
			}
			return nil
		},
	},
	{
		Code: "WEFT-141", Topic: netTopic, Severity: Breaks,
		Title:       "there are few ports for connections",
		Symptom:     "`Cannot assign requested address`, `Address already in use`",
		Consequence: "a rank of a large job takes thousands of ports: connections fail when they run out",
		Remedy:      "sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
		check: func(x *Exam) []Finding {
			f := strings.Fields(x.Sysctl("net/ipv4/ip_local_port_range"))
			if len(f) != 2 {
				return nil
			}
			low, err1 := strconv.Atoi(f[0])
			high, err2 := strconv.Atoi(f[1])
			if err1 != nil || err2 != nil || high-low+1 >= 10000 {
				return nil
			}
			return seen("net.ipv4.ip_local_port_range", "/proc/sys/net/ipv4/ip_local_port_range is %d to %d", low, high).one()
		},
	},
	{
		Code: "WEFT-142", Topic: netTopic, Severity: Slows,
		Title:       "connections were dropped because nobody accepted them in time",
		Symptom:     "`connect timed out` while a job starts",
		Consequence: "the queue of a listening socket was full",
		Remedy:      "sysctl -w net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=8192",
		check: func(x *Exam) []Finding {
			if n := x.netstat("TcpExt", "ListenOverflows"); n > manyRefused {
				return seen("", "/proc/net/netstat: ListenOverflows %d, ListenDrops %d", n, x.netstat("TcpExt", "ListenDrops")).one()
			}
			return nil
		},
	},
	{
		Code: "WEFT-143", Topic: netTopic, Severity: Slows,
		Title:       "TCP sends much of its data again",
		Symptom:     "TCP bandwidth far below the line, and uneven",
		Consequence: "the network loses packets: TCP slows down each time",
		Remedy:      "ss -ti shows the connections; look at WEFT-137 and WEFT-138, at the switch, and at the MTU on the path: ping -M do -s 8972 HOST",
		check: func(x *Exam) []Finding {
			out, again := x.snmp("Tcp", "OutSegs"), x.snmp("Tcp", "RetransSegs")
			if out < 1_000_000 || again*50 < out {
				return nil
			}
			return seen("", "/proc/net/snmp: RetransSegs %d of OutSegs %d", again, out).one()
		},
	},
	{
		Code: "WEFT-144", Topic: netTopic, Severity: Slows,
		Title:       "TCP's buffers cannot grow to what a fast line holds",
		Symptom:     "TCP over 25 Gb/s and more stays at a few Gb/s between distant hosts",
		Consequence: "a connection has no more under way than fits into its buffer",
		Remedy:      "sysctl -w net.ipv4.tcp_rmem='4096 131072 67108864' net.ipv4.tcp_wmem='4096 65536 67108864'",
		check: func(x *Exam) []Finding {
			for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
				f := strings.Fields(x.Sysctl("net/ipv4/" + name))
				if len(f) != 3 {
					continue
				}
				if most, err := strconv.Atoi(f[2]); err == nil && most < 4<<20 && x.fastSockets() {
					return seen("net.ipv4."+name, "/proc/sys/net/ipv4/%s is %s", name, strings.Join(f, " ")).one()
				}
			}
			return nil
		},
	},
	{
		Code: "WEFT-145", Topic: netTopic, Severity: Slows,
		Title:       "WEFT_CONGESTION names a congestion control that the kernel does not offer",
		Symptom:     "a line of the log says that the kernel's default is used",
		Consequence: "connections keep the kernel's default",
		check: func(x *Exam) []Finding {
			s := x.set("WEFT_CONGESTION")
			name := x.knobs.Text(knob.Congestion)
			allowed := strings.Fields(x.Sysctl("net/ipv4/tcp_available_congestion_control"))
			if name == "" || len(allowed) == 0 || slices.Contains(allowed, name) {
				return nil
			}
			return seen("WEFT_CONGESTION", "WEFT_CONGESTION=%s (%s); the kernel offers %s", name, s.From, strings.Join(allowed, ", ")).mend("modprobe tcp_%s", name).one()
		},
	},
	{
		Code: "WEFT-146", Topic: netTopic, Severity: Slows,
		Title:       "TCP may not scale its window, or not acknowledge selectively",
		Symptom:     "TCP stays below 1 Gb/s between hosts that are not next to each other",
		Consequence: "no more than 64 KiB are under way; each loss costs all that followed",
		Remedy:      "sysctl -w net.ipv4.tcp_window_scaling=1 net.ipv4.tcp_sack=1",
		check: func(x *Exam) (all []Finding) {
			for _, name := range []string{"tcp_window_scaling", "tcp_sack"} {
				if x.Sysctl("net/ipv4/"+name) == "0" {
					all = append(all, seen("net.ipv4."+name, "/proc/sys/net/ipv4/%s is 0", name))
				}
			}
			return all
		},
	},
}

// kernelRules: limits of the whole machine.
var kernelRules = []Rule{
	{
		Code: "WEFT-150", Topic: limitTopic, Severity: Breaks,
		Title:       "the machine has few files, threads or maps for all",
		Symptom:     "`Too many open files in system`, `pthread_create failed`, `mmap: Cannot allocate memory`",
		Consequence: "eight ranks of a large job take more",
		check: func(x *Exam) (all []Finding) {
			for _, c := range []struct {
				name  string
				least int64
			}{{"fs/file-max", 65536}, {"kernel/pid_max", 16384}, {"kernel/threads-max", 16384}, {"vm/max_map_count", 65530}} {
				if n, ok := x.Int("/proc/sys", c.name); ok && n < c.least {
					dotted := strings.ReplaceAll(c.name, "/", ".")
					all = append(all, seen(dotted, "/proc/sys/%s is %d", c.name, n).mend("sysctl -w %s=%d", dotted, c.least*16))
				}
			}
			return all
		},
	},
}

// fastSockets reports an interface of TCP of 25 Gb/s or more.
func (x *Exam) fastSockets() bool {
	all, _ := x.sockets()
	for _, n := range all {
		if n.Mbps >= 25000 {
			return true
		}
	}
	return false
}

// netstat and snmp read a value of two lines, the first of which names what the second has.
func (x *Exam) netstat(group, name string) int64 { return x.paired("/proc/net/netstat", group, name) }
func (x *Exam) snmp(group, name string) int64    { return x.paired("/proc/net/snmp", group, name) }

func (x *Exam) paired(file, group, name string) (n int64) {
	var heads []string
	for _, line := range x.Lines(file) {
		rest, ok := strings.CutPrefix(line, group+": ")
		if !ok {
			continue
		}
		if heads == nil {
			heads = strings.Fields(rest)
			continue
		}
		values := strings.Fields(rest)
		if at := slices.Index(heads, name); at >= 0 && at < len(values) {
			fmt.Sscan(values[at], &n) // stays 0 where it is no number
		}
		return n
	}
	return 0
}
