package session

import (
	"context"
	"errors"

	"weft/transport/wire"
)

// Get returns the session with process, held, opening it if need be. Of many
// callers one opens it; should that fail, the next tries with a handle of its own.
func (ss *All) Get(ctx context.Context, process wire.ProcessID, open func() (*Session, error)) (*Session, error) {
	for {
		ss.mu.Lock()
		o := ss.out[process]
		mine := o == nil
		if mine {
			o = &opening{ready: make(chan struct{})}
			ss.out[process] = o
		}
		ss.mu.Unlock()
		if mine {
			return ss.lead(process, o, open)
		}
		select {
		case <-o.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if o.err == nil && o.s.Hold() {
			return o.s, nil
		}
		ss.drop(process, o)
	}
}

func (ss *All) lead(process wire.ProcessID, o *opening, open func() (*Session, error)) (*Session, error) {
	o.err = errors.New("opening the control connection broke off") // should open panic
	defer func() {
		if o.err != nil {
			ss.drop(process, o)
		}
		close(o.ready)
	}()
	s, err := open()
	ss.mu.Lock()
	o.s = s
	closed := ss.closed
	ss.mu.Unlock()
	if err == nil && closed {
		s.closeDown()
	}
	if err == nil && !s.Hold() {
		err = errors.New("the control connection ended at once")
	}
	o.err = err
	return s, err
}

func (ss *All) drop(process wire.ProcessID, o *opening) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.out[process] == o {
		delete(ss.out, process)
	}
}
