package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
)

func newCmdConfig(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a file of controllers, or change a running controller's settings",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdConfigCheck(s), newCmdConfigSchema(s), newCmdConfigSet(s))
	return cmd
}

func newCmdConfigCheck(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a file of controllers without running it",
		Long: `Checks a file of wasmctl run -f: its keys and values, whether each module can be loaded, and the files of settings and grants that
it names. Everything that is wrong is told, with its line. Variables of the environment are put in as they are now. No cluster is asked.`,
		Example: "  wasmctl config check controllers.yaml",
		Args:    exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := readControllers(args[0])
			if err != nil {
				return withCode(exitUsage, err)
			}
			if err := f.checkFiles(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s: %s\n", args[0], plural(len(f.options), "controller"))
			return err
		},
	}
}

func newCmdConfigSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a file of controllers",
		Example: "  wasmctl config schema > controllers.schema.json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			flags, _, _ := newFlags()
			_, err := s.out.Write(runfile.Schema(flags))
			return err
		},
	}
}

// checkFiles checks the files that each controller names.
func (f *controllersFile) checkFiles(ctx context.Context) error {
	var errs []error
	for i, c := range f.read.Controllers {
		if err := f.options[i].checkFiles(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: controller[%s]: %w", f.path, c.Line, c.Name, err))
		}
	}
	return errors.Join(errs...)
}

func newCmdConfigSet(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "set CONTROLLER KEY=VALUE|KEY-...",
		Short: "Set or unset settings",
		Long: `Sets settings over those of --config and --config-file, or, with KEY-, leaves one to the module's manifest. The module may refuse
them: then the old ones stay. A setting that its manifest does not have is an error. All objects are reconciled with the new ones, at low priority. It lasts until the process ends.`,
		Example: `  wasmctl config set configmapgenerator prefix=blue
  wasmctl config set configmapgenerator prefix-`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := parseChange(args[1:])
			if err != nil {
				return usageError(cmd, err)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			gen, err := c.Configure(cmd.Context(), args[0], change)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintf(s.out, "settings %d are in force\n", gen)
			return err
		},
	}
	o.bind(cmd)
	return cmd
}

// parseChange reads KEY=VALUE and KEY-.
func parseChange(args []string) (map[string]*string, error) {
	change := map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		if unset, ok := strings.CutSuffix(arg, "-"); !set && ok {
			key = unset
		} else if !set {
			return nil, fmt.Errorf("setting %q: want KEY=VALUE, or KEY- to unset it", arg)
		}
		if key == "" {
			return nil, fmt.Errorf("setting %q: the key is missing", arg)
		}
		if _, twice := change[key]; twice {
			return nil, fmt.Errorf("setting %q: is named twice", key)
		}
		change[key] = nil
		if set {
			change[key] = &value
		}
	}
	return change, nil
}
