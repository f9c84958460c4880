package collnet

import (
	"slices"
	"sync"
)

// words are the requests of one process.
type words struct {
	mu     sync.Mutex
	last   uintptr
	blocks int
	open   map[uintptr]*word

	awaited map[int][]uintptr // by block
	looked  map[int]bool
}

func newWords() *words { return &words{awaited: map[int][]uintptr{}, looked: map[int]bool{}} }

type word struct {
	block int
	done  bool
	size  int
	code  int32
}

func (w *words) Open(uintptr) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocks++
	return w.blocks, nil
}

func (w *words) Take(block int) uintptr {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, o := range w.open {
		if o.block == block {
			n++
		}
	}
	if n == MaxRequests {
		return 0
	}
	if w.open == nil {
		w.open = map[uintptr]*word{}
	}
	w.last++
	w.open[w.last] = &word{block: block}
	return w.last
}

func (w *words) Done(request uintptr, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[request].done, w.open[request].size = true, size
}

func (w *words) Fail(request uintptr, code int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[request].code = code
}

func (w *words) Await(block int, groups []uintptr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited[block] = slices.Clone(groups)
}

func (w *words) Looked(block int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer delete(w.looked, block)
	return w.looked[block]
}

// asksHelp is what test does about a request that is pending, before it calls Help: see waits in requests.c.
func (w *words) asksHelp(request uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.open[request]
	if o == nil || o.done || o.code != 0 {
		return false
	}
	left := 0
	for _, r := range w.awaited[o.block] {
		if r == 0 {
			if left == 0 {
				return true
			}
			left = 0
			continue
		}
		state := waits(r)
		if state < 0 {
			return true
		}
		left += state
	}
	w.looked[o.block] = len(w.awaited[o.block]) > 0
	return !w.looked[o.block]
}

func (w *words) Close(block int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, o := range w.open {
		if o.block == block {
			delete(w.open, r)
		}
	}
}

// test is what the host's test says.
func (w *words) test(request uintptr) (done bool, size int, code int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.open[request]
	if o == nil {
		return false, 0, -1
	}
	if o.done {
		delete(w.open, request)
	}
	return o.done, o.size, o.code
}
