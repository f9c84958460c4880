package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// step bounds what a fault or a look at the machine takes.
const step = 30 * time.Second

// Output runs a program that must succeed and returns what it prints.
func (n *Node) Output(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), step)
	defer cancel()
	var out, says bytes.Buffer
	status, err := n.Run(ctx, Command{Args: args, Stdout: &out, Stderr: &says})
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", nodeName(n.Number), strings.Join(args, " "), err)
	}
	if status != 0 {
		return "", fmt.Errorf("%s: %s: status %d: %s", nodeName(n.Number), strings.Join(args, " "), status, strings.TrimSpace(says.String()))
	}
	return out.String(), nil
}

func (n *Node) ip(line string) error {
	_, err := n.Output(append([]string{"ip"}, strings.Fields(line)...)...)
	return err
}

// Pull takes the cable out of an interface: its port goes down, which its own machine notices at once.
func (n *Node) Pull(nic string) error { return n.ip("link set " + nic + " down") }

// Plug puts it back, with the routes that the kernel forgot meanwhile.
func (n *Node) Plug(nic string) error {
	if err := n.ip("link set " + nic + " up"); err != nil || n.lab.config.Nodes > 1 {
		return err
	}
	for _, c := range n.lab.Cables {
		for i, e := range c.Ends {
			if e.NIC == nic || c.Ends[1-i].NIC == nic {
				subnet := e.Addr[:strings.LastIndex(e.Addr, ".")] + ".0/24"
				for _, route := range []string{subnet, "local " + e.Addr} {
					if err := n.ip(fmt.Sprintf("route replace %s dev %s table %d", route, e.NIC, table(c, i))); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// Blackhole drops all that arrives at an interface, silently: the port stays up and nobody is told.
func (n *Node) Blackhole(nic string) error { return n.ip("rule add pref 5 iif " + nic + " blackhole") }

// Restore ends Blackhole.
func (n *Node) Restore(nic string) error { return n.ip("rule del pref 5 iif " + nic + " blackhole") }

// Resources counts what the kernel holds for RDMA: protection domains, completion queues, queue pairs, memory regions.
type Resources map[string]int

// Resources adds up all devices of the node.
func (n *Node) Resources() (Resources, error) {
	text, err := n.Output("rdma", "-j", "resource", "show")
	if err != nil {
		return nil, err
	}
	return parseResources(text)
}

func parseResources(text string) (Resources, error) {
	var devices []map[string]any
	if err := json.Unmarshal([]byte(text), &devices); err != nil {
		return nil, fmt.Errorf("rdma resource: %w", err)
	}
	sum := Resources{}
	for _, d := range devices {
		for key, v := range d {
			if count, ok := v.(float64); ok && key != "ifindex" {
				sum[key] += int(count)
			}
		}
	}
	return sum, nil
}

// Leaked lists what after has more of than before, empty when nothing leaked.
func (before Resources) Leaked(after Resources) string {
	var out []string
	for _, key := range []string{"pd", "cq", "qp", "mr", "srq", "cm_id", "ctx"} {
		if d := after[key] - before[key]; d > 0 {
			out = append(out, fmt.Sprintf("%d %s", d, key))
		}
	}
	return strings.Join(out, ", ")
}

// AwaitNoLeak looks until nothing is left over, for the kernel frees a killed process' resources a moment later.
func (n *Node) AwaitNoLeak(before Resources, limit time.Duration) error {
	for until := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		after, err := n.Resources()
		if err != nil {
			return err
		}
		left := before.Leaked(after)
		if left == "" {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s: leaked %s", nodeName(n.Number), left)
		}
	}
}
