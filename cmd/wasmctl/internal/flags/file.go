// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// MaxFile is the maximum size of the file of run -f, and MaxNamed that of a file that a controller
// names, in bytes.
const (
	MaxFile  = 1 << 20
	MaxNamed = 4 << 20
)

// File is a file of controllers: wasmctl run -f.
type File struct {
	Path    string
	Content []byte
	*runfile.File

	// Specs are the specs of the controllers, in the order of the file, with defaults.
	Specs []*v1alpha1.ControllerSpec
}

// ProcessFlags returns the flags of a process, and the options that they set.
func ProcessFlags() (*pflag.FlagSet, *Process) {
	process, cmd := &Process{}, &cobra.Command{}
	process.Bind(cmd)
	return cmd.Flags(), process
}

// Format returns the format of a file of controllers.
func Format() runfile.Format {
	process, _ := ProcessFlags()
	f := runfile.Format{Process: process}
	for i := range Fields {
		at := &Fields[i]
		f.Fields = append(f.Fields, runfile.Field{Path: at.Path, Help: at.Help, Former: runfile.KeyOf(at.Flag), IsPath: len(at.Extensions) > 0})
	}
	return f
}

// ReadFile reads a file of controllers.
func ReadFile(path string) (*File, error) {
	content, err := readFile(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--filename %s: %w", path, err)
	}
	return ParseFile(path, content)
}

// readFile reads a file of at most this many bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("is longer than %s, the limit", humanize.Bytes(most))
	}
	return content, err
}

// ParseFile parses and validates the content of a file, without modules and without a cluster.
func ParseFile(path string, content []byte) (*File, error) {
	f := &File{Path: path, Content: content}
	var err error
	if f.File, err = runfile.Parse(path, content, Format(), os.LookupEnv); err != nil {
		return nil, err
	}
	_, err = f.process((*Process).Validate)
	errs := []error{err}
	for i := range f.Controllers {
		c := &f.Controllers[i]
		s := c.Spec
		for _, e := range s.Validate(nil) {
			err := v1alpha1.Errors(field.ErrorList{e}, func(at string) string { return fmt.Sprintf("controllers[%d].%s", i, at) })
			errs = append(errs, fmt.Errorf("%s:%s: %w", path, c.Where(e.Field), err))
		}
		s.Default()
		f.Specs = append(f.Specs, &s)
	}
	return f, errors.Join(errs...)
}

// Fits calls Process.Fits with the options in the file, without flags of the command line.
func (f *File) Fits() error {
	_, err := f.process(func(p *Process) error { return p.Fits(len(f.Specs)) })
	return err
}

// Registry returns the Registry for the options in the file, without flags of the command line.
func (f *File) Registry() *Registry {
	p, _ := f.process(nil) // ParseFile has checked it
	return &p.Registry
}

// Leader returns the options about replicas in the file, without flags of the command line.
func (f *File) Leader() *Leader {
	p, _ := f.process(nil) // ParseFile has checked it
	return &p.Leader
}

// Drain returns the longest drain timeout of the controllers.
func (f *File) Drain() (longest time.Duration) {
	for _, s := range f.Specs {
		longest = max(longest, s.DrainTimeout.Or(runner.DefaultDrainTimeout))
	}
	return longest
}

// process returns the process options in the file, and the error of check for them. check may be nil.
func (f *File) process(check func(*Process) error) (*Process, error) {
	flags, process := ProcessFlags()
	err := f.Process.Apply(flags)
	if err == nil && check != nil {
		err = check(process)
	}
	if err != nil {
		err = fmt.Errorf("%s: process: %w", f.Path, keysFor(err, flags))
	}
	return process, err
}

var flagName = regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)

// keysFor replaces the names of flags in an error by the keys of a file.
func keysFor(err error, flags *pflag.FlagSet) error {
	return errors.New(flagName.ReplaceAllStringFunc(err.Error(), func(name string) string {
		if flags.Lookup(name[2:]) == nil {
			return name
		}
		return runfile.KeyOf(name[2:])
	}))
}

// Find returns the index of a controller, or -1 if there is none with this name.
func (f *File) Find(name string) int {
	return slices.IndexFunc(f.Controllers, func(c runfile.Controller) bool { return c.Spec.Name == name })
}

// LeaseName returns the default name of the Lease of a file's controllers.
func (f *File) LeaseName() string {
	base := filepath.Base(f.Path)
	return "wasmctl-" + strings.TrimSuffix(base, filepath.Ext(base))
}
