package ras

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"weft/internal/owner"
)

// Default is where RAS listens unless NCCL_RAS_ADDR says otherwise.
const Default = "localhost:28028"

const (
	connecting = 3 * time.Second
	greeting   = time.Second
	greetings  = 10
	answering  = 20 * time.Second // RAS itself gives up after 10
	again      = time.Second      // after which somebody who is still behind stands
	longest    = 64 << 20         // bytes of an answer
	line       = 4096             // of a reply
)

// Address is the one that is asked where none is given.
func Address() string { return cmp.Or(os.Getenv("NCCL_RAS_ADDR"), Default) }

// Ask asks RAS at an address, twice if somebody is behind.
func Ask(ctx context.Context, address string) (*Answer, error) {
	a, err := ask(ctx, address)
	if err != nil || !a.behind() {
		return a, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(again):
	}
	b, err := ask(ctx, address)
	if err != nil {
		return nil, err
	}
	b.stands(a)
	return b, nil
}

// ask tries again where nobody says hello: all processes of a host listen at the one
// port, and the kernel may choose one that is stopped.
func ask(ctx context.Context, address string) (a *Answer, err error) {
	for range greetings {
		a, err = once(ctx, address)
		if err == nil || !errors.Is(err, errNoHello) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nobody listens at %s: the job has ended, its NCCL is older than 2.24, NCCL_RAS_ENABLE=0 is set, or NCCL_RAS_ADDR names another address", address)
	case err != nil:
		return nil, fmt.Errorf("RAS at %s: %w", address, err)
	}
	a.Address = address
	return a, nil
}

func once(ctx context.Context, address string) (*Answer, error) {
	d := net.Dialer{Timeout: connecting}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	in := bufio.NewReaderSize(c, line)
	if err := c.SetDeadline(time.Now().Add(greeting)); err != nil {
		return nil, err
	}
	if err := hello(c, in); err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(answering)); err != nil {
		return nil, err
	}
	return status(c, in)
}

var errNoHello = errors.New("nobody says hello: the process that listens is stopped, or it is no RAS")

func hello(w io.Writer, in *bufio.Reader) error {
	reply, err := say(w, in, "CLIENT PROTOCOL 2")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errNoHello
	case err != nil:
		return err
	case !strings.HasPrefix(strings.ToUpper(reply), "SERVER PROTOCOL "):
		return fmt.Errorf("it is no RAS service: it says %q", reply)
	}
	return nil
}

// status asks for JSON, which came with 2.28, and takes text where it has none.
func status(w io.Writer, in *bufio.Reader) (*Answer, error) {
	format, err := say(w, in, "SET FORMAT json")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, "VERBOSE STATUS\n"); err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(in, longest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("after %d bytes of its answer: %w", len(all), err)
	case len(all) > longest:
		return nil, fmt.Errorf("its answer has more than %d MiB", longest>>20)
	case len(bytes.TrimSpace(all)) == 0:
		return nil, errors.New("it has closed the connection without an answer")
	}
	if strings.EqualFold(format, "OK") {
		return parseJSON(all)
	}
	return parseText(string(all))
}

// say sends a line and returns the one that comes back.
func say(w io.Writer, r *bufio.Reader, command string) (string, error) {
	if _, err := io.WriteString(w, command+"\n"); err != nil {
		return "", err
	}
	reply, err := r.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("instead of a reply to %q: %w", command, err)
	}
	return owner.Plain(bytes.TrimRight(reply, "\r\n")), nil
}
