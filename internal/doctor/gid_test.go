package doctor

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/fstest"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
	"weft/transport/rdma"
	"weft/transport/verbs/gid"
)

// What is told to be chosen is what weft chooses, over tables of every kind and every knob.
func TestGIDChoiceIsWefts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for range 2000 {
		env := map[string]string{}
		for name, value := range map[string]string{
			"NCCL_IB_GID_INDEX": pick("", "", "1", "3", "-1", "mlx5_0=2,4", "mlx5_0:1=0x1", "x"), "NCCL_IB_ROCE_VERSION_NUM": pick("", "1", "2"),
			"NCCL_IB_ADDR_FAMILY": pick("", "AF_INET", "AF_INET6"), "NCCL_IB_ADDR_RANGE": pick("", "10.1.0.0/16", "2001:db8::/32", "nonsense"),
		} {
			if value != "" {
				env[name] = value
			}
		}
		var ours []machine.GID
		var theirs []gid.GID
		for i := range r.IntN(8) {
			addr := netip.MustParseAddr(pick("fe80::1", "10.1.0.7", "10.2.0.7", "2001:db8::7", "169.254.3.4"))
			addr = netip.AddrFrom16(addr.As16())
			v2 := r.IntN(2) == 1
			kind := rdma.GIDRoCEv1
			if v2 {
				kind = rdma.GIDRoCEv2
			}
			ours = append(ours, machine.GID{Index: i, Addr: addr, V2: v2, NetDev: "eth1"})
			theirs = append(theirs, gid.GID{Index: i, Addr: addr, Type: kind, NetDev: "eth1", Bits: 24})
		}
		text := ""
		for name, value := range env {
			text += name + "=" + value + "\n"
		}
		x := examinedFS(t, fstest.MapFS{"proc/self/environ": &fstest.MapFile{Data: []byte(text)}})
		got, _, ok := x.gidWishes().choose(&machine.Port{Card: &machine.Card{Name: "mlx5_0"}, Number: 1}, ours)
		rules, _ := gid.RulesOf(knob.Parse(env))
		want, _, err := rules.Choose("mlx5_0", 1, rdma.LinkEthernet, theirs)
		if ok != (err == nil) || ok && got.Index != want[0].Index {
			t.Fatalf("%v, table %v: %v (%v), weft takes %v (%v)", env, theirs, got, ok, fmt.Sprint(want), err)
		}
	}
}
