package guest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/lab/frame"
)

// setup does what the owner wants of this machine.
func setup(c *frame.Setup) error {
	os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	for _, m := range c.Mounts {
		if err := os.MkdirAll(m.Path, 0o755); err != nil {
			return err
		}
		if err := mount(m.Tag, m.Path, "9p", 0, nineP+"none"); err != nil {
			return err
		}
	}
	lines := []string{"link set lo up"}
	// Room for rules before the one that delivers to the machine itself: blackholes, and routing by device.
	lines = append(lines, "rule add pref 100 lookup local", "rule del pref 0")
	if c.Policy {
		if err := policy(); err != nil {
			return err
		}
	}
	made := map[string]bool{}
	for _, n := range c.NICs {
		if n.Peer != "" && made[n.Peer] {
			continue // the other end made both
		}
		made[n.Name] = true
		more, err := makeNIC(n)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	if err := batch("ip", lines); err != nil {
		return err
	}
	lines = nil
	var rdma []string
	for _, n := range c.NICs {
		// Nobody else is on these cables: looking for duplicate addresses would only take two seconds.
		os.WriteFile("/proc/sys/net/ipv6/conf/"+n.Name+"/accept_dad", []byte("0"), 0)
		more, err := bringUp(n, c.Policy)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
		rdma = append(rdma, "link add "+n.RDMA+" type rxe netdev "+n.Name)
	}
	if err := batch("ip", lines); err != nil {
		return err
	}
	if err := batch("rdma", rdma); err != nil {
		return err
	}
	return awaitAddresses(c.NICs)
}

// policy lets both ends of a cable lie in one network namespace: addresses of the machine are local only to what arrives on a
// device, so that what is sent from one of its devices to another leaves by the cable. rxe of these kernels knows no other namespace.
func policy() error {
	for _, dev := range []string{"all", "default"} {
		for key, value := range map[string]string{"rp_filter": "0", "accept_local": "1", "arp_ignore": "1"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+dev+"/"+key, []byte(value), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeNIC gives a network card its name, or makes a veth pair.
func makeNIC(n frame.NIC) ([]string, error) {
	if n.Peer != "" {
		return []string{fmt.Sprintf("link add %s mtu %d type veth peer name %s mtu %d", n.Name, n.MTU, n.Peer, n.MTU)}, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.HardwareAddr.String() != n.MAC {
			continue
		}
		var lines []string
		if i.Name != n.Name {
			lines = append(lines, "link set "+i.Name+" name "+n.Name)
		}
		return append(lines, fmt.Sprintf("link set %s mtu %d", n.Name, n.MTU)), nil
	}
	return nil, fmt.Errorf("the machine has no network card %s, meant for %s", n.MAC, n.Name)
}

func bringUp(n frame.NIC, policy bool) ([]string, error) {
	lines := []string{"addr add " + n.Prefix + " dev " + n.Name, "link set " + n.Name + " up"}
	if !policy {
		return lines, nil
	}
	own, subnet, err := net.ParseCIDR(n.Prefix)
	return append(lines,
		fmt.Sprintf("rule add pref 10 iif %s lookup local", n.Name),
		fmt.Sprintf("rule add pref 20 oif %s lookup %d", n.Name, n.Table),
		// A device reaches itself without the cable, as any does that routes by the table of local addresses.
		fmt.Sprintf("route add local %s dev %s table %d", own, n.Name, n.Table),
		fmt.Sprintf("route add %s dev %s table %d", subnet, n.Name, n.Table)), err
}

// awaitAddresses waits until no address of IPv6 is tentative any more: until then the link-local GID is not there.
func awaitAddresses(nics []frame.NIC) error {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command("ip", "-6", "addr", "show", "tentative").Output()
		if err != nil {
			return fmt.Errorf("ip -6 addr: %w", err)
		}
		if len(strings.TrimSpace(string(out))) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("addresses are still tentative after 10 s: %s", out)
		}
	}
}

// batch gives lines to ip or rdma at once: to start a program takes long on an emulated CPU.
func batch(program string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-b", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s -b: %w: %s (given: %s)", program, err, strings.TrimSpace(string(out)), strings.Join(lines, "; "))
	}
	return nil
}
