package comms

import (
	"testing"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/rendezvous"
	"weft/transport/session"
)

// card carries a comm by itself; its fence takes until slow is closed.
type card struct {
	fp     *fastpath.Comm
	slow   chan struct{}
	fenced chan struct{} // told each time
}

func (c *card) ID() uint64                    { return c.fp.Cookie() }
func (c *card) Slab() (*fastpath.Comm, error) { return c.fp, nil }
func (c *card) Open(carrier.Comm) error       { return nil }
func (c *card) Describe(string) string        { return "a card" }
func (c *card) Shut(*session.Member, bool)    { c.fp.Free() }
func (c *card) Fence()                        { <-c.slow; c.fenced <- struct{}{} }
func (c *card) Spoil()                        {}
func (c *card) Drain()                        {}
func (c *card) Left()                         {}

// Who finds a comm failed finds it among the fences too, whoever failed it first.
func TestFailedCommIsFenced(t *testing.T) {
	log := &report.Recorder{}
	host := &Host{Log: log, Code: func(error, int) int32 { return 7 }, Noise: rendezvous.NewNoise(log), Owner: log, Gone: func(*Comm) {}}
	fp, err := fastpath.New(fastpath.Options{Kind: fastpath.Send, Cookie: Reserve()})
	if err != nil {
		t.Fatal(err)
	}
	by := &card{fp: fp, slow: make(chan struct{}), fenced: make(chan struct{}, 8)}
	dev := &device.Device{Device: rdma.Device{Name: "card0"}, Ports: memory.NewPorts()}
	c, err := New(host, dev, fastpath.Send, "peer", "", by)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.because(report.Errorf(report.Host, "test", "a cause"), failure)
	c.mu.Unlock()
	fences.mu.Lock()
	known := fences.all[&c.fenced]
	fences.mu.Unlock()
	if known == 0 {
		t.Error("a deregMr does not wait for it")
	}
	close(by.slow)
	fences.wait()
	if len(by.fenced) == 0 {
		t.Error("a deregMr frees memory before the fence")
	}
	if log.Count("WARN", "a cause") != 1 {
		t.Errorf("%q", log.Lines())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
