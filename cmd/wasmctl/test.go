package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
)

// testOptions are the flags of test.
type testOptions struct {
	module   string
	paths    []string
	run      string
	update   bool
	chaos    bool
	output   string
	cacheDir string
	verbose  bool
	filter   *regexp.Regexp // of run
	streams  streams
}

// errCases says that cases do not hold; which is in the output.
var errCases = errors.New("cases failed")

func newCmdTest(s streams, runF func(context.Context, *testOptions) error) *cobra.Command {
	o := &testOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "test MODULE CASES...",
		Short: "Run a module against tables of cases, without a cluster",
		Long: `Runs each case of the files CASES (of a directory: of its *.yaml files) with the module on the real host and an API server in
memory, and compares what the run did with what the case expects: action, error, writes as diffs, events, status.
docs/testing.md describes the files. Exits with 1 if a case does not hold.

With --chaos each case is run until the object is at rest, once undisturbed, and then again with each of its requests failing
in each way: 409, 429, 500, a timeout, an answer that is lost, a process that ends after the write. The objects at the end
must be the same.`,
		Example: `  wasmctl test greeter.wasm cases

  # Write what the runs did into the files, to be looked at and committed
  wasmctl test greeter.wasm cases --update

  # Does it make up for whatever goes wrong?
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
			return runF(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *testOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "only cases whose name matches this regular expression")
	f.BoolVar(&o.update, "update", false, "write what was seen into the files")
	f.BoolVar(&o.chaos, "chaos", false, "let each request fail in each way, and see whether the module makes up for it")
	f.StringVarP(&o.output, "output", "o", "text", strings.Join(resultFormats, ", "))
	f.StringVar(&o.cacheDir, "cache-dir", "", `directory for compiled modules, "none" for none that stays (default: that of wasmctl run)`)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show cases that hold, and what the module logs")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(resultFormats, cobra.ShellCompDirectiveNoFileComp))
}

func (o *testOptions) validate() error {
	if !slices.Contains(resultFormats, o.output) {
		return fmt.Errorf("--output %q: want one of %s", o.output, strings.Join(resultFormats, ", "))
	}
	if o.update && o.chaos {
		return errors.New("--update and --chaos: one or the other")
	}
	var err error
	if o.filter, err = regexp.Compile(o.run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	return nil
}

func runTest(ctx context.Context, o *testOptions) error {
	wasm, err := readModule(o.module)
	if err != nil {
		return err
	}
	files, err := readCases(o.paths)
	if err != nil {
		return withCode(exitUsage, err)
	}
	suite := &cases.Suite{Wasm: wasm, Name: moduleName(o.module)}
	dir, release, err := o.compiled()
	if err != nil {
		return err
	}
	defer release()
	suite.CacheDir = dir
	if o.verbose {
		if suite.Log, err = newLogger(o.streams.err, "text", 1); err != nil {
			return err
		}
	}
	r := &testReport{o: o}
	for _, f := range files {
		if err := o.runFile(ctx, suite, f, r); err != nil {
			return moduleError(err)
		}
	}
	return r.finish()
}

// compiled returns a directory for compiled code. Each case loads the module, so
// there is one even if it is for this run alone.
func (o *testOptions) compiled() (dir string, release func(), err error) {
	switch o.cacheDir {
	case "":
		if base, err := os.UserCacheDir(); err == nil {
			return filepath.Join(base, "wasmctl", "modules"), func() {}, nil
		}
	case "none":
	default:
		return o.cacheDir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "wasmctl-test-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// readCases reads files, and the *.yaml files of directories.
func readCases(paths []string) ([]*cases.File, error) {
	var files []*cases.File
	for _, path := range paths {
		names := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if names, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
				return nil, err
			}
			if len(names) == 0 {
				return nil, fmt.Errorf("cases[%s]: %w: no *.yaml file is in it", path, fs.ErrNotExist)
			}
		}
		for _, name := range names {
			f, err := cases.Read(name)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// runFile runs the cases of a file that are asked for.
func (o *testOptions) runFile(ctx context.Context, suite *cases.Suite, f *cases.File, r *testReport) error {
	var verdicts []cases.Verdict
	for _, c := range f.Cases {
		if !o.filter.MatchString(c.Name) {
			continue
		}
		if o.chaos {
			report, err := suite.Chaos(ctx, c)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", f.Path, c.Line, err)
			}
			r.chaos(f, c, report)
			continue
		}
		v, err := suite.Run(ctx, c)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", f.Path, c.Line, err)
		}
		verdicts = append(verdicts, v)
		r.verdict(f, &v)
	}
	if !o.update || !slices.ContainsFunc(verdicts, func(v cases.Verdict) bool { return v.Failed() }) {
		return nil
	}
	text, err := cases.Update(f, verdicts)
	if err != nil {
		return err
	}
	return os.WriteFile(f.Path, text, 0o644) // a file that is there keeps its mode
}
