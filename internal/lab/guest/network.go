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
	if err := ip("link set lo up"); err != nil {
		return err
	}
	if c.Policy {
		if err := policy(); err != nil {
			return err
		}
	}
	for _, n := range c.NICs {
		if err := makeNIC(n); err != nil {
			return err
		}
	}
	for _, n := range c.NICs {
		if err := bringUp(n, c.Policy); err != nil {
			return err
		}
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
	if err := ip("rule add pref 100 lookup local"); err != nil {
		return err
	}
	return ip("rule del pref 0")
}

// makeNIC gives a network card its name, or makes a veth pair, once for both ends.
func makeNIC(n frame.NIC) error {
	if n.Peer != "" {
		if _, err := net.InterfaceByName(n.Name); err == nil {
			return nil
		}
		return ip(fmt.Sprintf("link add %s mtu %d type veth peer name %s mtu %d", n.Name, n.MTU, n.Peer, n.MTU))
	}
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.HardwareAddr.String() != n.MAC {
			continue
		}
		if i.Name != n.Name {
			if err := ip("link set " + i.Name + " name " + n.Name); err != nil {
				return err
			}
		}
		return ip(fmt.Sprintf("link set %s mtu %d", n.Name, n.MTU))
	}
	return fmt.Errorf("the machine has no network card %s, meant for %s", n.MAC, n.Name)
}

func bringUp(n frame.NIC, policy bool) error {
	// Nobody else is on these cables: looking for duplicate addresses would only take two seconds.
	os.WriteFile("/proc/sys/net/ipv6/conf/"+n.Name+"/accept_dad", []byte("0"), 0)
	lines := []string{
		"addr add " + n.Prefix + " dev " + n.Name,
		"link set " + n.Name + " up",
	}
	if policy {
		_, subnet, err := net.ParseCIDR(n.Prefix)
		if err != nil {
			return err
		}
		lines = append(lines,
			fmt.Sprintf("rule add pref 10 iif %s lookup local", n.Name),
			fmt.Sprintf("rule add pref 20 oif %s lookup %d", n.Name, n.Table),
			fmt.Sprintf("route add %s dev %s table %d", subnet, n.Name, n.Table))
	}
	for _, l := range lines {
		if err := ip(l); err != nil {
			return err
		}
	}
	return command("rdma", "link", "add", n.RDMA, "type", "rxe", "netdev", n.Name)
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

func ip(line string) error { return command("ip", strings.Fields(line)...) }

func command(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
