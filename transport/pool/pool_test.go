package pool

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/session"
	"weft/transport/verbs/event"
)

// toy is a kit that counts its end.
type toy struct {
	session *session.Session
	comm    uint64
	ended   atomic.Int32
}

func (k *toy) Session() *session.Session   { return k.session }
func (k *toy) Comm() uint64                { return k.comm }
func (k *toy) Concerned(*event.Event) bool { return false }
func (k *toy) Down() bool                  { return false }
func (k *toy) Destroy()                    { k.ended.Add(1) }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

// keptBy are those that a pool has, the oldest first.
func keptBy(p *Pool[*toy]) (all []*toy) {
	p.Forget(func(k *toy) bool { all = append(all, k); return false })
	return all
}

func config() Config {
	return Config{Log: report.Discard{}, Most: 8, Age: time.Hour, AfterFunc: time.AfterFunc, Lingers: func(int) {}, Vain: func() bool { return false }}
}

// The timer ends what has been there for long enough, and only that.
func TestPoolAges(t *testing.T) {
	c := config()
	c.Age = 10 * time.Millisecond
	p := New[*toy](c)
	first, second := &toy{}, &toy{}
	p.mu.Lock()
	p.kits = []kept[*toy]{{first, time.Now()}, {second, time.Now().Add(time.Hour)}}
	p.wake()
	p.mu.Unlock()
	eventually(t, "the first is gone", func() bool { return len(keptBy(p)) == 1 && first.ended.Load() == 1 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || second.ended.Load() != 0 {
		t.Error("nothing ends the second, or it is gone already")
	}
}

// With one too many the earliest connection of the oldest's session goes, in whatever order they came.
func TestPoolIsBounded(t *testing.T) {
	c := config()
	c.Most = 2
	p := New[*toy](c)
	one, other := &session.Session{}, &session.Session{}
	kits := []*toy{{session: one, comm: 7}, {session: other, comm: 1}, {session: one, comm: 5}, {session: one, comm: 9}}
	for _, k := range kits {
		p.Put(k)
	}
	eventually(t, "two are gone", func() bool { return kits[2].ended.Load()+kits[0].ended.Load() == 2 })
	if all := keptBy(p); len(all) != 2 || all[0] != kits[1] || all[1] != kits[3] {
		t.Errorf("%v", all)
	}
	if got := p.Take(func(k *toy) bool { return k.session == one }); got != kits[3] {
		t.Error("another is given away")
	}
	if got := p.Take(func(k *toy) bool { return k.session == one }); got != nil {
		t.Error("one is given away twice")
	}
	p.Put(kits[3])
	p.Empty()
	eventually(t, "none is left", func() bool { return len(keptBy(p)) == 0 && kits[1].ended.Load()+kits[3].ended.Load() == 2 })
}

// Whoever makes a queue pair while the card has none left, with locks held that
// the watch wants, gets those of the pool even if that is being given another.
func TestPoolYieldsWhileItIsGivenMore(t *testing.T) {
	var watch sync.Mutex
	c := config()
	c.Vain = func() bool {
		watch.Lock()
		defer watch.Unlock()
		return false
	}
	p := New[*toy](c)
	watch.Lock()
	answer := sync.OnceFunc(watch.Unlock)
	defer answer()
	put, yielded := make(chan struct{}), make(chan bool)
	go func() { p.Put(&toy{session: &session.Session{}}); close(put) }()
	eventually(t, "put asks the watch, and the pool is free", func() bool {
		if !p.mu.TryLock() {
			return false
		}
		defer p.mu.Unlock()
		return len(p.kits) == 1
	})
	go func() { yielded <- p.Yield() }()
	if !<-yielded {
		t.Error("it had nothing")
	}
	answer()
	<-put
}
