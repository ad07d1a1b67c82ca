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

	// Specs are those of the controllers, in their order, with defaults.
	Specs []*v1alpha1.ControllerSpec
}

// ProcessFlags returns the flags of a process, and what they set.
func ProcessFlags() (*pflag.FlagSet, *Process) {
	process, cmd := &Process{}, &cobra.Command{}
	process.Bind(cmd)
	return cmd.Flags(), process
}

// Format returns the keys of a file.
func Format() runfile.Format {
	process, _ := ProcessFlags()
	f := runfile.Format{Process: process}
	for i := range Fields {
		at := &Fields[i]
		f.Fields = append(f.Fields, runfile.Field{Path: at.Path, Help: at.Help, Former: runfile.KeyOf(at.Flag), IsPath: at.IsPath()})
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

// Fits is Process.Fits for what the file alone says.
func (f *File) Fits() error {
	_, err := f.process(func(p *Process) error { return p.Fits(len(f.Specs)) })
	return err
}

// Registry reads modules as the file alone says.
func (f *File) Registry() *Registry {
	p, _ := f.process(nil) // ParseFile has checked it
	return &p.Registry
}

// Leader returns what the file alone says of replicas.
func (f *File) Leader() *Leader {
	p, _ := f.process(nil) // ParseFile has checked it
	return &p.Leader
}

// Drain returns how long the controllers may take to end.
func (f *File) Drain() (longest time.Duration) {
	for _, s := range f.Specs {
		longest = max(longest, s.DrainTimeout.Or(runner.DefaultDrainTimeout))
	}
	return longest
}

// process returns the options of the process that the file has, and what is wrong with
// them by a check, which may be nil.
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

// keysFor says what is wrong with flags of the process in the words of a file.
func keysFor(err error, flags *pflag.FlagSet) error {
	return errors.New(flagName.ReplaceAllStringFunc(err.Error(), func(name string) string {
		if flags.Lookup(name[2:]) == nil {
			return name
		}
		return runfile.KeyOf(name[2:])
	}))
}

// Find returns the place of a controller, -1 if there is none.
func (f *File) Find(name string) int {
	return slices.IndexFunc(f.Controllers, func(c runfile.Controller) bool { return c.Spec.Name == name })
}

// LeaseName is the default name of the Lease of a file's controllers.
func (f *File) LeaseName() string {
	base := filepath.Base(f.Path)
	return "wasmctl-" + strings.TrimSuffix(base, filepath.Ext(base))
}
