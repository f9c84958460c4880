package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/doctor"
	"weft/internal/lab"
)

// sshHosts are machines on each of which ssh starts one rank.
type sshHosts struct {
	list    []string
	ssh     string
	program string
	leash   bool // this process is one of them
}

// ofHosts are the flags that say where ranks run, which ranks of hosts are not given.
var ofHosts = []string{"hosts", "ssh", "remote-weft", "rank", "nranks", "join", "token", "local", "leash"}

func (h *sshHosts) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&h.list, "hosts", nil, "start a rank on each of these `hosts` by ssh, such as node1,node2; the first is rank 0. They get this process's NCCL_ and WEFT_ variables")
	f.StringVar(&h.ssh, "ssh", "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10", "the `command` of --hosts that takes a host and what to run there")
	f.StringVar(&h.program, "remote-weft", "", "`path` of weft on the hosts (default: this program's)")
	f.BoolVar(&h.leash, "leash", false, "take the token and variables from stdin, and end when it ends")
	f.Lookup("leash").Hidden = true
}

// leashed reads what the starting process sends ahead, and returns a context that ends with stdin: ssh that is gone takes its rank along.
func (h *sshHosts) leashed(ctx context.Context, stdin io.Reader) (context.Context, error) {
	in := bufio.NewReader(stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("--leash: stdin ended before the empty line behind the variables: %w", err)
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			break
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("--leash: %q is no NAME=VALUE", line)
		}
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // whatever ends it
		cancel(errors.New("the process that has started this rank is gone"))
	}()
	return ctx, nil
}

// overSSH runs the command of c on every host, and returns when all have ended. What rank 0 prints goes to stdout, what others print is
// shown behind the name of its host. Flags named in mine are this process's, and the hosts get those in instead.
func (h *sshHosts) overSSH(c *cobra.Command, stdout io.Writer, mine []string, instead ...string) error {
	if len(h.list) < 2 {
		return errors.New("--hosts: want two hosts or more, such as node1,node2; one process of this machine needs none")
	}
	for _, name := range []string{"rank", "nranks", "join", "local"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s and --hosts both say where ranks run: give one", name)
		}
	}
	for _, name := range []string{"plugin", "vs", "host", "input", "output_file"} {
		if f := c.Flags().Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") && !filepath.IsAbs(f.Value.String()) {
			return fmt.Errorf("--%s %s: give its whole path, for it is one of the hosts'", name, f.Value)
		}
	}
	start, program, err := h.command()
	if err != nil {
		return err
	}
	port, err := rand.Int(rand.Reader, big.NewInt(10_000))
	if err != nil {
		return err
	}
	token := make([]byte, 16)
	rand.Read(token)
	first := h.list[0][strings.LastIndexByte(h.list[0], '@')+1:] // without the user
	join := net.JoinHostPort(strings.Trim(first, "[]"), fmt.Sprint(20_000+port.Int64()))
	ahead := variables(os.Environ(), hex.EncodeToString(token))
	ctx, stop := stoppable(c.Context(), func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "# "+format+"\n", a...) })
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // whole lines
	statuses := make([]int, len(h.list))
	errs := make([]error, len(h.list))
	var wg sync.WaitGroup
	for rank, host := range h.list {
		line := remote(c, append(slices.Clone(mine), ofHosts...), program, rank, len(h.list), join, instead)
		wg.Go(func() {
			out, errOut := lab.NewPrefixed(c.OutOrStdout(), "["+host+"] ", &mu), lab.NewPrefixed(c.ErrOrStderr(), "["+host+"] ", &mu)
			defer out.Flush()
			defer errOut.Flush()
			to := io.Writer(out)
			if rank == 0 {
				to = stdout
			}
			if statuses[rank], errs[rank] = ranOn(ctx, append(slices.Clone(start), host, line), ahead, to, errOut); statuses[rank] > 0 && ctx.Err() == nil {
				fmt.Fprintf(errOut, "ended with status %d\n", statuses[rank])
			}
			if errs[rank] != nil || statuses[rank] == 2 { // it will never come: the others need not wait
				cancel()
			}
		})
	}
	wg.Wait()
	for rank, err := range errs {
		if err != nil {
			return failure{fmt.Errorf("%s: %w (--ssh is %q)", h.list[rank], err, h.ssh)}
		}
	}
	if slices.Contains(statuses, 2) {
		return status(2)
	}
	return ended(slices.Max(statuses))
}

// command is what starts a program on a host, and the path of weft there.
func (h *sshHosts) command() (start []string, program string, err error) {
	if start = strings.Fields(h.ssh); len(start) == 0 {
		return nil, "", errors.New("--ssh: want a command, such as ssh")
	}
	if program = h.program; program == "" {
		program, err = os.Executable()
	}
	return start, program, err
}

// ranOn starts one rank, sends what goes ahead, and waits for its end.
func ranOn(ctx context.Context, args []string, ahead []byte, stdout, stderr io.Writer) (with int, err error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = in.Close // its rank ends by that, and ssh after it
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, wrote := in.Write(ahead)
	err = cmd.Wait()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 1, nil // which has been told
	case errors.As(err, &ended) && ended.ExitCode() == sshFailed:
		return 0, errors.New("ssh did not start weft there, as it says above")
	case errors.As(err, &ended) && ended.ExitCode() < 0:
		return 0, err // a signal ended it
	case errors.As(err, &ended):
		return ended.ExitCode(), nil
	case err == nil && wrote != nil:
		return 0, wrote
	}
	return 0, err
}

// sshFailed is the exit status of ssh itself.
const sshFailed = 255

// remote is the line that a rank's shell is given: the command with its flags, but for some.
func remote(c *cobra.Command, without []string, program string, rank, nranks int, join string, instead []string) string {
	args := append([]string{program}, strings.Fields(c.CommandPath())[1:]...)
	args = append(args, "--leash", fmt.Sprintf("--rank=%d", rank), fmt.Sprintf("--nranks=%d", nranks), "--join="+join)
	args = append(args, instead...)
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	for i := range args {
		args[i] = doctor.ShellQuote(args[i])
	}
	return "exec " + strings.Join(args, " ")
}

// variables are the lines that a rank reads first: what NCCL and weft are told here, and the secret of these ranks.
func variables(environ []string, token string) []byte {
	var b bytes.Buffer
	for _, e := range environ {
		if (strings.HasPrefix(e, "NCCL_") || strings.HasPrefix(e, "WEFT_")) && !strings.ContainsRune(e, '\n') && !strings.HasPrefix(e, runToken+"=") {
			fmt.Fprintf(&b, "%s\n", e)
		}
	}
	fmt.Fprintf(&b, runToken+"=%s\n\n", token)
	return b.Bytes()
}
