// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/logging"
)

// testOptions are the flags of test.
type testOptions struct {
	module   string
	registry flags.Registry
	paths    []string
	run      string
	update   bool
	chaos    bool
	cost     bool
	output   string
	cacheDir string
	verbose  bool
	filter   *regexp.Regexp // of run
	streams  streams
}

func newCmdTest(s streams) *cobra.Command {
	o := &testOptions{streams: s, registry: flags.Registry{Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "test MODULE CASES...",
		Short: "Run a module against test cases without a cluster",
		Long: `Runs each case in the files CASES (in a directory: in its *.yaml files) with the module on the real host and an in-memory API server,
and compares the run with what the case expects: action, error, writes as diffs, events, status. docs/testing.md describes the
files. Exits with 1 if a case fails.

A case also fails if the run costs more than the case allows with "cost": fuel, requests to the API server, memory of the module
and bytes of its result. These are the same on every machine. --cost shows what each run costs. With --update, wasmctl raises
limits that a run exceeds, and with both flags, it adds those that are missing.

With --chaos, each case runs until the object is stable: once without faults, and then with each of its requests failing in each
way: 409, 429, 500, a timeout, a lost answer, a process that ends after the write. The objects must be the same in the end.`,
		Example: `  wasmctl test greeter.wasm cases

  # Write the observed results to the files, for review
  wasmctl test greeter.wasm cases --update

  # Show what each run costs, and then limit it to that
  wasmctl test greeter.wasm cases --cost
  wasmctl test greeter.wasm cases --cost --update

  # Check that the module recovers from failures
  wasmctl test greeter.wasm cases --chaos --run 'makes'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError(cmd, fmt.Errorf("%s is missing", []string{"MODULE", "CASES"}[len(args)]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module, o.paths = args[0], args[1:]
			if err := o.validate(); err != nil {
				return usageError(cmd, err)
			}
			return runTest(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *testOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	o.registry.Bind(f)
	f.StringVar(&o.run, "run", "", "Run only cases whose name matches this `regexp`")
	f.BoolVar(&o.update, "update", false, "Write the observed results to the files")
	f.BoolVar(&o.cost, "cost", false, "Show the cost of each run; with --update, write it to the files as a limit")
	f.BoolVar(&o.chaos, "chaos", false, "Make each request fail in each way, and check that the module recovers")
	outputFlag(cmd, &o.output, "text", "json")
	f.StringVar(&o.cacheDir, "cache-dir", "", `Cache compiled modules in this directory; "none" turns it off (default: as wasmctl run)`)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "Show passing cases and the module's log")
}

func (o *testOptions) validate() error {
	if o.chaos && (o.update || o.cost) {
		return errors.New("--chaos cannot be combined with --update or --cost")
	}
	var err error
	if o.filter, err = regexp.Compile(o.run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	return nil
}

func runTest(ctx context.Context, o *testOptions) error {
	wasm, err := o.registry.Read(ctx, o.registry.Open(o.module))
	if err != nil {
		return err
	}
	files, err := cases.ReadAll(o.paths)
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	suite := &cases.Suite{Wasm: wasm, Name: flags.ModuleName(o.module)}
	dir, release, err := o.compiled()
	if err != nil {
		return err
	}
	defer release()
	suite.CacheDir, suite.CacheKey = dir, cacheKey(o.streams.err)
	if o.verbose {
		if suite.Log, err = logging.New(o.streams.err, "text", 1); err != nil {
			return err
		}
	}
	r := &printer.Tests{Out: o.streams.out, AsJSON: o.output == "json", Verbose: o.verbose, Update: o.update, Cost: o.cost}
	if err := o.runFiles(ctx, suite, files, r); err != nil {
		return engine.ModuleError(err)
	}
	if r.Empty() {
		return failure.Usage.Wrap(fmt.Errorf("--run %s: no case matches", o.run))
	}
	return r.Sum()
}

// compiled returns a directory for compiled code. Because each case loads the module, it creates a
// temporary directory if caching is off.
func (o *testOptions) compiled() (dir string, release func(), err error) {
	if dir, err = flags.CacheDir(o.cacheDir); err == nil && dir != "" {
		return dir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "wasmctl-test-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// runFiles runs the selected cases of all files, and shows the progress.
func (o *testOptions) runFiles(ctx context.Context, suite *cases.Suite, files []*cases.File, r *printer.Tests) error {
	var done atomic.Int64
	total := 0
	for _, f := range files {
		total += len(f.Cases)
	}
	defer o.streams.progress.StartCount("testing", &done, int64(total), progress.Cases).End()
	for _, f := range files {
		if err := o.runFile(ctx, suite, f, r, &done); err != nil {
			return err
		}
	}
	return nil
}

// runFile runs the selected cases of a file. It adds to done for each case.
func (o *testOptions) runFile(ctx context.Context, suite *cases.Suite, f *cases.File, r *printer.Tests, done *atomic.Int64) error {
	var verdicts []cases.Verdict
	for i, c := range f.Cases {
		if i > 0 {
			done.Add(1)
		}
		if !o.filter.MatchString(c.Name) {
			continue
		}
		if o.chaos {
			report, err := suite.Chaos(ctx, c)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", f.Path, c.Line, err)
			}
			r.Chaos(f, c, report)
			continue
		}
		v, err := suite.Run(ctx, c)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", f.Path, c.Line, err)
		}
		verdicts = append(verdicts, v)
		r.Verdict(f, &v)
	}
	if !o.update {
		return nil
	}
	text, err := cases.Update(f, verdicts, o.cost)
	if err != nil || bytes.Equal(text, f.Text) {
		return err
	}
	return os.WriteFile(f.Path, text, 0o644) // the mode of an existing file stays
}

// cacheKey returns the key for compiled modules. If the user's key is not available, it prints a warning
// and returns a key for this process only.
func cacheKey(stderr io.Writer) []byte {
	key, err := flags.CacheKey()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "wasmctl: compiled modules of other processes are not used:", err) // advice
	}
	return key
}
