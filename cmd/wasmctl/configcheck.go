// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

func newCmdConfigCheck(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a controllers file without running it",
		Long: `Checks a file for wasmctl run -f: its keys and values, whether each module can be loaded and has the settings, and the settings and
grant files that it names. All errors are printed, each with its line. Environment variables are expanded. The command does not
contact a cluster.`,
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
			_, err = fmt.Fprintf(s.out, "%s: %s\n", args[0], humanize.Plural(len(f.Specs), "controller"))
			return err
		},
	}
}

// checkAllFiles checks the files that each controller names.
func checkAllFiles(ctx context.Context, f *flags.File) error {
	var errs []error
	from := f.Registry()
	for i, c := range f.Controllers {
		var info *load.Info
		_, err := checkFilesOf(ctx, from, f.Specs[i], func(ctx context.Context, wasm []byte) *load.Info {
			info = load.Inspect(ctx, wasm)
			return info
		})
		if err == nil {
			err = checkSettings(f.Specs[i], info.Manifest)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: controller[%s]: %w", f.Path, c.Line, c.Spec.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkSettings returns an error for settings that the manifest does not declare. If the file of the
// module has no manifest, or one without a name, all settings are accepted.
func checkSettings(o *v1alpha1.ControllerSpec, m *abi.Manifest) error {
	files, err := flags.ReadFiles(o)
	if err != nil || m == nil || m.Name == "" {
		return err
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(flags.Settings(o, files))) {
		errs = append(errs, engine.KnownSetting(m, key))
	}
	return failure.Usage.Wrap(errors.Join(errs...))
}
