package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/version"
)

// status ends a command that has told what is wrong.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ended is the end of a command that has told what there is to tell.
func ended(with int) error {
	if with == 0 {
		return nil
	}
	return status(with)
}

// failure is of what was asked for, not of how it was asked: exit status 1.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// execute carries out a command line, without the program's name, and returns the exit status. An error that has no status of its
// own says that the command cannot be carried out as given.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return executed(ctx, weft(), args, stdout, stderr)
}

func executed(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	c, err := root.ExecuteContextC(ctx)
	var told status
	var failed failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return int(told)
	case errors.As(err, &failed):
		fmt.Fprintf(stderr, "%s: %v\n", c.CommandPath(), err)
		return 1
	}
	fmt.Fprintf(stderr, "%s: %v\n", c.CommandPath(), err)
	return 2
}

// weft is the command of all commands.
func weft() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "weft",
		Short: "run, judge, watch and explain network plugins for NCCL",
		Long: `Runs, judges, watches and explains network plugins for NCCL.

Exit status: 0 all is well, 1 it is not, 2 the command cannot be carried out as given.`,
		Version: fmt.Sprintf("%s, %s, %s/%s", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
	}, runCommand(), perfCommand(), conformCommand(), checkCommand(), doctorCommand(), infoCommand(), envCommand(), selftestCommand(), traceCommand(), metricsCommand(), topCommand(), labCommand(), abiCommand(), versionCommand(), manCommand())
	c.SilenceErrors, c.SilenceUsage = true, true // execute says what is wrong
	c.SetVersionTemplate("{{.Version}}\n")
	c.SetUsageTemplate(usage)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w (%s -h explains the flags)", err, c.CommandPath())
	})
	inOrder(c)
	return c
}

// usage is what -h prints behind what a command is for.
const usage = `usage: {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{if .HasAvailableSubCommands}}
commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}{{if .HasExample}}
examples:
{{.Example}}
{{end}}
flags:
{{.LocalFlags.FlagUsagesWrapped 100}}{{if .HasAvailableSubCommands}}
{{.CommandPath}} COMMAND -h explains a command.
{{end}}`

// inOrder has the help tell of flags in the order in which they were made.
func inOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.LocalFlags().SortFlags = false
	for _, sub := range c.Commands() {
		inOrder(sub)
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "name this build, as --version does", Args: cobra.NoArgs, Run: func(c *cobra.Command, _ []string) {
		fmt.Fprintln(c.OutOrStdout(), c.Root().Version)
	}}
}

// group is a command that only has others.
func group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			c.SetOut(c.ErrOrStderr())
			return errors.Join(c.Help(), status(2))
		}
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("there is no command %q: is it %s?", args[0], strings.Join(near, ", or "))
		}
		return fmt.Errorf("there is no command %q (%s -h lists them)", args[0], c.CommandPath())
	}
	return c
}

// oneOf has a shell complete a flag's value.
func oneOf(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}
