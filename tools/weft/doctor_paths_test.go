package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/doctor"
)

// Three hosts at a switch, and a fourth behind a router, all of MTU 9000. The ports of both are in the network that they end with.
const switchedHosts = `set -e
mount -t tmpfs none /run
mkdir /run/netns
ip link add switch type bridge forward_delay 0
ip link set switch mtu 9000 up
ip addr add 10.81.0.254/24 dev switch
echo 1 >/proc/sys/net/ipv4/ip_forward
host() {
	ip netns add "$1"
	ip link add "port-$1" mtu 9000 type veth peer name eth0 mtu 9000 netns "$1"
	ip -n "$1" addr add "$2/24" dev eth0
	for dev in lo eth0; do ip -n "$1" link set "$dev" up; done
	ip link set "port-$1" up
	ip -n "$1" route add default via "${2%.*}.254"
}
for n in 1 2 3; do
	host "node$n" "10.81.0.$n"
	ip link set "port-node$n" master switch
	ip -n "node$n" addr add "fd81::$n/64" dev eth0 nodad
done
host node4 10.81.4.4
ip addr add 10.81.4.254/24 dev port-node4
ask() { "$WEFT" doctor --json --look 0s --ssh "$DIR/ssh" --remote-weft "$WEFT" --hosts "$2" >"$DIR/$1" || [ $? = 1 ]; }
ask well node1,node2,node3,node4
ip link set port-node2 mtu 1500
ask switch node1,node2,node3
for rank in 2 1 0; do # as torchrun starts them
	ip netns exec "node$((rank + 1))" unshare -u sh -c "hostname node$((rank + 1))
		RANK=$rank LOCAL_RANK=0 WORLD_SIZE=3 MASTER_ADDR=10.81.0.1 MASTER_PORT=29700 exec '$WEFT' doctor --json --look 0s" >"$DIR/job$rank" &
	last=$!
done
wait $last || [ $? = 1 ]
cp "$DIR/job0" "$DIR/job"
ip link set port-node2 mtu 9000
ip link set port-node4 mtu 1500
ask router node1,node4
ip link set port-node4 mtu 9000
for family in -4 -6; do
	ip $family -n node3 rule add prio 2 lookup local
	ip $family -n node3 rule add prio 1 ipproto udp blackhole
	ip $family -n node3 rule del prio 0
done
ask filter node1,node2,node3
`

// TestDoctorOfPaths has hosts probe what passes between them: all, less by a switch's port that says nothing or by a router that does,
// and where packets of UDP are dropped nothing is known.
func TestDoctorOfPaths(t *testing.T) {
	needsHosts(t)
	weft, _ := programs(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec ip netns exec \"$1\" unshare -u sh -c \"hostname $1; $2\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", append(apart, "sh", "-c", switchedHosts)...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NCCL_") || strings.HasPrefix(v, "WEFT_") })
	c.Env = append(c.Env, "NCCL_IB_DISABLE=1", "DIR="+dir, "WEFT="+weft)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct {
		name     string
		hosts    int
		narrow   string // the host whose port is
		told     bool
		unprobed string
		says     []string
	}{
		{"well", 4, "", false, "", nil},
		{"switch", 3, "node2", false, "", []string{"breaks: packets of 9000 bytes are lost", "from node1 eth0 (MTU 9000) to node2 eth0 (MTU 9000)", "nothing on the way says so; every probed path of node2 eth0 is so", "ip link set eth0 mtu 1500"}},
		{"job", 3, "node2", false, "", []string{"breaks: packets of 9000 bytes are lost", "from node1 eth0 (MTU 9000) to node2 eth0 (MTU 9000)", "nothing on the way says so; every probed path of node2 eth0 is so", "ip link set eth0 mtu 1500"}},
		{"router", 2, "node4", true, "", []string{"slows: packets of 9000 bytes are lost", "a router on the way says so"}},
		{"filter", 3, "", false, "node3", nil},
	} {
		b, err := os.ReadFile(filepath.Join(dir, test.name))
		if err != nil {
			t.Fatal(err)
		}
		var r doctor.Report
		if err := json.Unmarshal(b, &r); err != nil || len(r.Hosts) != test.hosts {
			t.Fatalf("%s: %v\n%s", test.name, err, b)
		}
		paths := 0
		for _, h := range r.Hosts {
			if len(h.Answers) > 0 {
				t.Errorf("%s: %s answers at %v, and is gone", test.name, h.Name, h.Answers)
			}
			for _, p := range h.Paths {
				paths++
				of := func(name string) bool { return h.Name == name || p.Host == name }
				switch {
				case of(test.unprobed):
					if p.Unprobed == "" || p.Passes != 0 {
						t.Errorf("%s: %s: %+v", test.name, h.Name, p)
					}
				case p.Unprobed != "" || of(test.narrow) != (p.Passes >= 1500 && p.Passes <= 1504) || !of(test.narrow) && p.Passes != 9000: // a bridge leaves room for a VLAN's tag
					t.Errorf("%s: %s: %+v", test.name, h.Name, p)
				case p.Told && !test.told, test.told && p.Host == test.narrow && !p.Told:
					t.Errorf("%s: told %v: %s: %+v", test.name, p.Told, h.Name, p)
				}
			}
		}
		if paths < test.hosts {
			t.Errorf("%s: %d paths", test.name, paths)
		}
		said := ""
		for _, f := range r.Across {
			if f.Code == "WEFT-170" {
				said += fmt.Sprintf("%s: %s; %s\n", f.Severity, f.Evidence, f.Remedy)
			}
		}
		for _, want := range test.says {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not said: %s", test.name, want, said)
			}
		}
		if test.says == nil && said != "" {
			t.Errorf("%s: %s", test.name, said)
		}
	}
}
