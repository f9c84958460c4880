// Command check runs one step of the test suite, prints what matters of its output, and counts what passed and what failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weft/internal/beat"
	"weft/internal/skips"
)

const usage = `usage: check [-kind cmd|gotest|tap] [-limit 40m] NAME COMMAND [ARG ...]
       check -summary [-status N]
Results are appended to the file that WEFT_RESULTS names; -summary adds them up and fails unless all passed. -status is the
exit status of the make that ran the steps: when it is not 0 and no step failed, a step could not even be run, which counts.
`

func main() {
	kind := flag.String("kind", "cmd", "how to count: cmd (the exit status), gotest (tests of go test), tap (lines of TAP)")
	limit := flag.Duration("limit", 40*time.Minute, "the command is ended after this time")
	summary := flag.Bool("summary", false, "add up the results")
	status := flag.Int("status", 0, "exit status of what ran the steps")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	file := os.Getenv("WEFT_RESULTS")
	if *summary {
		total, err := sum(file, *status)
		if err != nil {
			fmt.Fprintln(os.Stderr, "check:", err)
			os.Exit(2)
		}
		fmt.Println(total.table())
		if total.all.Failed > 0 || total.all.Passed == 0 {
			os.Exit(1)
		}
		return
	}
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	r := step(flag.Arg(0), *kind, *limit, flag.Args()[1:])
	if err := r.append(file); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	if r.Failed > 0 {
		os.Exit(1)
	}
}

// step runs a command and counts.
func step(name, kind string, limit time.Duration, args []string) result {
	fmt.Printf("=== %s\n", name)
	counter := &shared{}
	alive := beat.Start(func(since time.Duration) { fmt.Println(progress(name, since, counter.busy())) })
	defer alive.Stop()
	counter.counter, args = newCounter(kind, args, alive.Writer(os.Stdout))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = counter, os.Stderr
	// Children of a killed go test may hold the pipe open.
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	err := cmd.Start()
	if err == nil {
		err = wait(cmd, limit)
	}
	r := counter.done()
	r.Name, r.Seconds = name, time.Since(begin).Seconds()
	if err != nil && r.Failed == 0 {
		r.Failed = 1
		fmt.Printf("%s: %v\n", strings.Join(args, " "), err)
	}
	if kind == "cmd" && r.Failed == 0 {
		r.Passed = 1
	}
	if r.Passed == 0 && r.Failed == 0 {
		r.Failed = 1
		fmt.Printf("%s: nothing was tested\n", strings.Join(args, " "))
	}
	fmt.Printf("--- %s\n", r)
	return r
}

// progress is the line of a step that has said nothing for a while.
func progress(name string, since time.Duration, busy string) string {
	if busy != "" {
		busy = ": " + busy
	}
	return fmt.Sprintf("... %s, %v%s", name, since, busy)
}

// wait ends the command and all its children when the limit has passed or somebody interrupts us.
func wait(cmd *exec.Cmd, limit time.Duration) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var why error
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		why = fmt.Errorf("ended after %v", limit)
	case s := <-stop:
		why = fmt.Errorf("ended by %v", s)
	}
	// SIGQUIT first: Go programs then print where they hang.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGQUIT)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	return why
}

// newCounter returns what reads the command's output, and the command as it must be called for that.
func newCounter(kind string, args []string, out io.Writer) (counter, []string) {
	switch kind {
	case "gotest":
		for i, a := range args {
			if a == "test" && i > 0 && filepath.Base(args[i-1]) == "go" {
				json := append([]string{}, args[:i+1]...)
				list, err := skips.List()
				if err != nil {
					panic(err) // the list is part of this program, and tested
				}
				return &goTest{out: out, skips: list}, append(append(json, "-json"), args[i+1:]...)
			}
		}
	case "tap":
		return &tap{out: out}, args
	}
	return &plain{out: out}, args
}
