package plugin

import "sync"

// fakeRequests are request words that C does not see.
type fakeRequests struct {
	mu   sync.Mutex
	last uintptr
	all  map[uintptr]int32 // -1: under way, 0: done, else the code
}

func (f *fakeRequests) set(request uintptr, v int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[request] = v
}

func (f *fakeRequests) get(request uintptr) int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[request]
}

func (f *fakeRequests) Open(uintptr) (int, error) { return 0, nil }
func (f *fakeRequests) Close(int)                 {}
func (f *fakeRequests) Await(int, []uintptr)      {}
func (f *fakeRequests) Looked(int) bool           { return false }

func (f *fakeRequests) Take(int) uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	f.all[f.last] = -1
	return f.last
}

func (f *fakeRequests) Done(request uintptr, _ int)      { f.set(request, 0) }
func (f *fakeRequests) Fail(request uintptr, code int32) { f.set(request, code) }
