// Command weft runs, judges and measures network plugins for NCCL through the C
// host process weft-host; it contains no C itself.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"weft/internal/lab/frame"
	"weft/internal/lab/guest"
	"weft/internal/version"
)

type command struct {
	name, about string
	run         func(args []string) int
}

var commands = []command{
	{"run", "move verified data between ranks through a plugin", runRun},
	{"conform", "judge a plugin against NCCL's contract, table by table", runConform},
	{"doctor", "say how NCCL looks for plugins on this machine, and what is wrong", runDoctor},
	{"trace", "show, merge and judge what processes have recorded", runTrace},
	{"metrics", "what connections have counted, for Prometheus and OpenTelemetry", runMetrics},
	{"top", "what connections do, as they do it", runTop},
	{"lab", "run a command in virtual machines with Soft-RoCE", runLab},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == frame.Argument {
		os.Exit(guest.Main()) // in a machine of weft lab
	}
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}

func dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		help(stderr)
		return 2
	}
	switch args[0] {
	case "version", "-version", "--version":
		fmt.Fprintf(stdout, "%s, %s, %s/%s\n", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	case "help", "-h", "-help", "--help":
		help(stdout)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(stderr, "weft: there is no command %q\n\n", args[0])
	help(stderr)
	return 2
}

func help(w io.Writer) {
	fmt.Fprint(w, "usage: weft COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\nweft COMMAND -h explains a command; weft --version names this build. Exit status: 0 all is well, 1 it is not, 2 the command cannot be carried out as given.\n")
}
