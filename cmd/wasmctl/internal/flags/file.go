package flags

import (
	"cmp"
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

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// MaxFile is how large the file of run -f may be, and MaxNamed one that a
// controller's flags name, in bytes.
const (
	MaxFile  = 1 << 20
	MaxNamed = 4 << 20
)

// File is a file of controllers: wasmctl run -f.
type File struct {
	Path    string
	Content []byte
	*runfile.File

	// Flags are those of the controllers, in their order.
	Flags []*Controller
}

// Sets returns the flags that are the keys of a file, and what they set.
func Sets() (flags runfile.Flags, process *Process, controller *Controller) {
	process, controller = &Process{}, &Controller{}
	p, c := &cobra.Command{}, &cobra.Command{}
	process.Bind(p)
	controller.Bind(c)
	return runfile.Flags{Process: p.Flags(), Controller: c.Flags()}, process, controller
}

// ReadFile reads a file of controllers.
func ReadFile(path string) (*File, error) {
	content, err := readFile(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--filename %s: %w", path, err)
	}
	return ParseFile(path, content)
}

// readFile reads a file of at most so many bytes.
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

// ParseFile reads the content of a file, and checks all that can be
// checked without modules and cluster.
func ParseFile(path string, content []byte) (*File, error) {
	flags, process, _ := Sets()
	f := &File{Path: path, Content: content}
	var err error
	if f.File, err = runfile.Parse(path, content, flags, os.LookupEnv); err != nil {
		return nil, err
	}
	var errs []error
	if err = f.Process.Apply(flags.Process); err == nil {
		err = process.Validate()
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: process: %w", path, keysFor(err, flags.Process)))
	}
	for i := range f.Controllers {
		o, err := optionsOf(&f.Controllers[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: controller[%s]: %w", path, f.Controllers[i].Line, f.Controllers[i].Name, err))
		}
		f.Flags = append(f.Flags, o)
	}
	return f, errors.Join(errs...)
}

// Fits is Process.Fits for what the file alone says.
func (f *File) Fits() error {
	flags, process, _ := Sets()
	err := f.Process.Apply(flags.Process)
	if err == nil {
		err = process.Fits(len(f.Flags))
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: process: %w", f.Path, keysFor(err, flags.Process))
}

// Registry reads modules as the file alone says.
func (f *File) Registry() *Registry { return &f.process().Registry }

// Leader is what the file alone says of replicas.
func (f *File) Leader() *Leader { return &f.process().Leader }

// Drain is how long the controllers may take to end.
func (f *File) Drain() (longest time.Duration) {
	for _, c := range f.Flags {
		longest = max(longest, cmp.Or(c.DrainTimeout, runner.DefaultDrainTimeout))
	}
	return longest
}

func (f *File) process() *Process {
	flags, process, _ := Sets()
	_ = f.Process.Apply(flags.Process) // ParseFile has done it too
	return process
}

// optionsOf returns the options of a controller of a file.
func optionsOf(c *runfile.Controller) (*Controller, error) {
	o, err := Of(c.Values)
	o.Module = c.Module
	return o, err
}

// Of returns the options that values of flags mean. Errors name flags as a file
// does.
func Of(values runfile.Values) (*Controller, error) {
	flags, _, o := Sets()
	err := values.Apply(flags.Controller)
	if err == nil {
		err = o.Validate()
	}
	return o, keysFor(err, flags.Controller)
}

var flagName = regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)

// keysFor says what is wrong with flags in the words of a file.
func keysFor(err error, flags *pflag.FlagSet) error {
	if err == nil {
		return nil
	}
	return errors.New(flagName.ReplaceAllStringFunc(err.Error(), func(name string) string {
		if flags.Lookup(name[2:]) == nil {
			return name
		}
		return runfile.KeyOf(name[2:])
	}))
}

// Find returns the place of a controller, -1 if there is none.
func (f *File) Find(name string) int {
	return slices.IndexFunc(f.Controllers, func(c runfile.Controller) bool { return c.Name == name })
}

// LeaseName is the default name of the Lease of a file's controllers.
func (f *File) LeaseName() string {
	base := filepath.Base(f.Path)
	return "wasmctl-" + strings.TrimSuffix(base, filepath.Ext(base))
}
