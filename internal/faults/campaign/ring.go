package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

// ring is hosts of tools/host, which all-reduce around a ring: what one does not send, the next has not to send on.
type ring struct {
	ranks []*ranked
	done  chan struct{}
	loops sync.WaitGroup
	fail  atomic.Pointer[error]
}

// ranked is one.
type ranked struct {
	h          *host.Host
	n          *host.Net
	send, recv host.Ptr
	args       host.Args
	held       atomic.Bool
	lag        atomic.Int64 // us
}

const (
	patience = time.Minute
	mostData = 4 << 20
	piece    = 64 << 10
)

// wrapped is a program that runs another in front of which stand the words of wrap.
func wrapped(dir, bin string, rank int, wrap []string) (string, error) {
	if wrap == nil {
		return bin, nil
	}
	path := filepath.Join(dir, fmt.Sprintf("host%d", rank))
	text := fmt.Sprintf("#!/bin/sh\nexec "+strings.Join(wrap, " ")+" %s \"$@\"\n", rank, bin)
	return path, os.WriteFile(path, []byte(text), 0o700)
}

func startRing(j *job, seed uint64) (program, error) {
	bin, err := build.Host()
	if err != nil {
		return nil, err
	}
	lib, err := build.Library()
	if err != nil {
		return nil, err
	}
	r := &ring{done: make(chan struct{})}
	var handles [][]byte
	var listens []host.Ptr
	for i := range j.ranks {
		k, handle, listen, err := r.rank(j, i, bin, lib)
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
		r.ranks, handles, listens = append(r.ranks, k), append(handles, handle), append(listens, listen)
	}
	var wg sync.WaitGroup
	errs := make([]error, j.ranks)
	for i, k := range r.ranks {
		wg.Go(func() { errs[i] = k.connect(handles[(i+1)%j.ranks], listens[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.stop()
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	size := int64(256<<10) << rng.IntN(3)
	for i, k := range r.ranks {
		k.args = append(k.args, "count", size/4, "iters", 4, "warm", 0, "piece", piece, "group", 1, "rank", i, "nranks", j.ranks, "limit", patience)
		r.loops.Go(func() { r.loop(k) })
	}
	return r, nil
}

// rank starts one process, which listens.
func (r *ring) rank(j *job, i int, bin, lib string) (k *ranked, handle []byte, listen host.Ptr, err error) {
	bin, err = wrapped(j.dir, bin, i, j.wrap())
	if err != nil {
		return nil, nil, 0, err
	}
	h, err := host.Start(host.Options{Bin: bin, Name: fmt.Sprintf("rank %d", i), Env: j.env(i), Deadline: patience, Log: func(l host.LogLine) {
		if l.Level == warn {
			j.hear(i, l.Text)
		}
	}})
	if err != nil {
		return nil, nil, 0, err
	}
	k = &ranked{h: h}
	defer func() {
		if err != nil {
			h.Kill()
		}
	}()
	l, err := h.Load(lib)
	if err != nil {
		return nil, nil, 0, err
	}
	if k.n, err = l.BindNet(host.FamilyNet.Newest()); err != nil {
		return nil, nil, 0, err
	}
	if err := k.n.Init(); err != nil {
		return nil, nil, 0, err
	}
	at, listen, err := k.n.Listen(0)
	if err != nil {
		return nil, nil, 0, err
	}
	handle, err = h.Read(at, int64(k.n.HandleSize()))
	return k, handle, listen, err
}

const warn = 2 // of host.LogLine

// connect joins the rank to the next and to the one before.
func (k *ranked) connect(next []byte, listen host.Ptr) error {
	at, err := k.h.Alloc(int64(len(next)))
	if err != nil {
		return err
	}
	if err := k.h.Write(at, next); err != nil {
		return err
	}
	if k.send, k.recv, err = k.n.ConnectAccept(0, at, listen, patience); err != nil {
		return err
	}
	const size = 2*mostData + 8*piece
	base, err := k.h.Alloc(size)
	if err != nil {
		return err
	}
	smh, err := k.n.RegMr(k.send, base, size)
	if err != nil {
		return err
	}
	rmh, err := k.n.RegMr(k.recv, base, size)
	k.args = host.Args{"send", k.send, "recv", k.recv, "smh", smh, "rmh", rmh, "in", base, "out", base + mostData, "scratch", base + 2*mostData}
	return err
}

// loop has a rank all-reduce until the job ends.
func (r *ring) loop(k *ranked) {
	for i := 1; ; i++ {
		for k.held.Load() {
			select {
			case <-r.done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		args := append(host.Args{"on", k.n.As, "seed", i, "lag", k.lag.Load()}, k.args...)
		reply, err := k.h.CallIn(2*patience, k.n.Data, "ring.allreduce", args)
		if err == nil && reply.Int("wrong") != 0 {
			err = fmt.Errorf("%d elements are wrong", reply.Int("wrong"))
		}
		if err != nil {
			r.fail.CompareAndSwap(nil, &err)
			return
		}
		select {
		case <-r.done:
			return
		default:
		}
	}
}

func (r *ring) pid(rank int) int { return r.ranks[rank].h.PID }

func (r *ring) late(rank int) error {
	r.ranks[rank].held.Store(true)
	return nil
}

func (r *ring) lag(rank int) error {
	r.ranks[rank].lag.Store(3000)
	return nil
}

func (r *ring) err() error {
	if err := r.fail.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *ring) stop() {
	close(r.done)
	for _, k := range r.ranks {
		k.h.Kill()
	}
	r.loops.Wait()
}
