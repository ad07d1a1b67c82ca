package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

func newCmdConfigCheck(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a controllers file without running it",
		Long: `Checks a file for wasmctl run -f: its keys and values, whether each module can be loaded, and the settings and grant files that it
names. All errors are printed, each with its line. Environment variables are expanded. The command does not contact a cluster.`,
		Example: "  wasmctl config check controllers.yaml",
		Args:    exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := flags.ReadFile(args[0])
			if err == nil {
				err = f.Fits()
			}
			if err != nil {
				return failure.Usage.Wrap(err)
			}
			if err := checkAllFiles(cmd.Context(), f); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s: %s\n", args[0], humanize.Plural(len(f.Flags), "controller"))
			return err
		},
	}
}

// checkAllFiles checks the files that each controller names.
func checkAllFiles(ctx context.Context, f *flags.File) error {
	var errs []error
	from := f.Registry()
	for i, c := range f.Controllers {
		if _, err := checkFilesOf(ctx, from, f.Flags[i], host.Inspect); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: controller[%s]: %w", f.Path, c.Line, c.Name, err))
		}
	}
	return errors.Join(errs...)
}
