package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
	"weft/internal/info"
	"weft/internal/info/frames"
	"weft/internal/info/knobs"
)

func infoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "info [flags]",
		Short: "devices, GIDs and GPUs of this machine, and which NCCL uses for which and why",
		Long: `RDMA devices with their ports and GIDs, and which GID weft talks from and why; the
interfaces of TCP; the GPUs, and which device NCCL uses for each and why. As
ibv_devinfo, but from the machine's files alone: it opens no card.

Exit status 0: told; 2: the machine cannot be read, or usage.`,
		Example: `  weft info
  weft info --device mlx5_0
  weft info --gids           (the tables alone: what show_gids shows, and what is chosen)
  weft info --gpus           (GPUs alone, and the way from each to each device)
  weft info --json | jq '.gpus[] | {index, nearest: [.nearest[].device]}'
  weft info knobs
  weft info handle 776566740128
  weft info --root /srv/images/node7`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is nothing to say about %q: it is knobs, handle, or nothing", args[0])
			}
			return nil
		},
	}
	f := c.Flags()
	l := lookOf(f)
	asJSON := f.Bool("json", false, "write JSON, in the form of docs/info.md")
	device := f.String("device", "", "tell of the RDMA device or interface of this `name` alone")
	gids := f.Bool("gids", false, "tell of GIDs alone, a line each")
	gpus := f.Bool("gpus", false, "tell of GPUs alone, and of the way from each to each device")
	c.RunE = func(c *cobra.Command, _ []string) error {
		part := info.All
		switch {
		case *gids && *gpus:
			return errors.New("--gids and --gpus are two reports: ask for one")
		case *gids:
			part = info.GIDs
		case *gpus:
			part = info.GPUs
		}
		r, err := looked(l, func(m *machine.Machine) (*info.Report, error) {
			x, err := doctor.Examine(m, 0)
			if err != nil {
				return nil, err
			}
			return info.New(x), nil
		})
		if err != nil {
			return err
		}
		if *device != "" {
			if err := r.Only(*device); err != nil {
				return err
			}
		}
		if *asJSON {
			return encode(c.OutOrStdout(), r)
		}
		return r.Part(c.OutOrStdout(), part)
	}
	c.AddCommand(infoKnobs(), infoHandle())
	return c
}

func infoKnobs() *cobra.Command {
	c := &cobra.Command{
		Use:   "knobs [flags]",
		Short: "every variable that is set, where, and what weft makes of it",
		Long: `Every variable of NCCL's network and of weft that is set, where (environment,
nccl.conf), its default, and what weft makes of it.

Exit status 0: told; 2: the machine cannot be read, or usage.`,
		Example: `  weft info knobs
  weft info knobs --all
  weft info knobs --json | jq '.knobs[] | select(.state != "taken")'`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	l := lookOf(f)
	asJSON := f.Bool("json", false, "write JSON, in the form of docs/info.md")
	all := f.Bool("all", false, "also those that are not set")
	c.RunE = func(c *cobra.Command, _ []string) error {
		r, err := looked(l, func(m *machine.Machine) (*knobs.Report, error) {
			x, err := doctor.Examine(m, 0)
			if err != nil {
				return nil, err
			}
			return knobs.New(x, *all), nil
		})
		if err != nil {
			return err
		}
		return printReport(c.OutOrStdout(), r, *asJSON)
	}
	return c
}

func infoHandle() *cobra.Command {
	c := &cobra.Command{
		Use:   "handle [flags] HEX|FILE|-",
		Short: "what stands in a connection handle, or in frames of weft's wire protocol",
		Long: `What stands in a connection handle, as NCCL carries it between ranks, or in frames of
weft's wire protocol: one side's bytes of a handshake or of a control connection, as
hex, as a file, or on standard input (-). Secrets are not shown.

Exit status 0: told; 1: some of the bytes cannot be read; 2: nothing can be read, or
usage.`,
		Example: `  weft info handle 776566740128
  weft info handle capture.bin
  xxd -p capture.bin | weft info handle -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one argument, hex or a file or - for standard input, not %d", len(args))
			}
			return nil
		},
	}
	asJSON := c.Flags().Bool("json", false, "write JSON, in the form of docs/info.md")
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := frames.Read(args[0], c.InOrStdin())
		if err != nil {
			return err
		}
		r := frames.Decode(b)
		if err := printReport(c.OutOrStdout(), r, *asJSON); err != nil {
			return err
		}
		if r.Wrong() {
			return status(1)
		}
		return nil
	}
	return c
}
