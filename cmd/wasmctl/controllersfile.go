package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// maxControllersFile is how large the file of run -f may be, in bytes.
const maxControllersFile = 1 << 20

// controllersFile is what was last read of the file of run -f. Once the process
// runs it belongs to followFile.
type controllersFile struct {
	path    string
	content []byte
	read    *runfile.File
	options []*controllerOptions // of read's controllers, in their order
}

// newFlags returns the flags that are the keys of a file, and what they set.
func newFlags() (flags runfile.Flags, process *processOptions, controller *controllerOptions) {
	process, controller = &processOptions{}, &controllerOptions{}
	p, c := &cobra.Command{}, &cobra.Command{}
	process.bind(p)
	controller.bind(c)
	return runfile.Flags{Process: p.Flags(), Controller: c.Flags()}, process, controller
}

// readControllers reads a file of controllers.
func readControllers(path string) (*controllersFile, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxControllersFile {
		err = fmt.Errorf("has %s, and at most %s are read", byteSize(info.Size()), byteSize(maxControllersFile))
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("--filename %s: %w", path, err)
	}
	return parseControllers(path, content)
}

// parseControllers reads the content of a file, and checks all that can be
// checked without modules and cluster.
func parseControllers(path string, content []byte) (*controllersFile, error) {
	flags, process, _ := newFlags()
	f := &controllersFile{path: path, content: content}
	var err error
	if f.read, err = runfile.Parse(path, content, flags, os.LookupEnv); err != nil {
		return nil, err
	}
	var errs []error
	if err = f.read.Process.Apply(flags.Process); err == nil {
		err = process.validate()
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: process: %w", path, keysFor(err, flags.Process)))
	}
	for i := range f.read.Controllers {
		o, err := optionsOf(&f.read.Controllers[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: controller[%s]: %w", path, f.read.Controllers[i].Line, f.read.Controllers[i].Name, err))
		}
		f.options = append(f.options, o)
	}
	return f, errors.Join(errs...)
}

// optionsOf returns the options of a controller of a file.
func optionsOf(c *runfile.Controller) (*controllerOptions, error) {
	flags, _, o := newFlags()
	err := c.Values.Apply(flags.Controller)
	o.module = c.Module
	if err == nil {
		err = o.validate()
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

// followFile applies the file whenever it changes, until ctx ends. One that
// cannot be read changes nothing.
func (p *process) followFile(ctx context.Context) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	changed := make(chan []byte)
	file := filewatch.File{
		Path: p.file.path, Content: p.file.content, MaxSize: maxControllersFile,
		OnChange: func(ctx context.Context, content []byte) {
			select {
			case changed <- content:
			case <-ctx.Done():
			}
		},
		OnError: func(err error) {
			p.log.Warn("the file of controllers cannot be read; they stay as they are", "file", p.file.path, "error", err.Error())
		},
	}
	p.members.wg.Go(func() { _ = file.Run(ctx) }) // its error has been told to OnError
	for {
		select {
		case <-ctx.Done():
			return
		case content := <-changed:
			p.applyFile(ctx, content)
		case <-again:
			if content, err := os.ReadFile(p.file.path); err == nil {
				p.applyFile(ctx, content)
			}
		}
	}
}

// applyFile makes the controllers those of the file. Those that are the same
// are not touched; those whose settings alone differ are given these; what else
// has changed is stopped, in order, and started anew.
func (p *process) applyFile(ctx context.Context, content []byte) {
	next, err := parseControllers(p.file.path, content)
	if err != nil {
		p.log.Warn("the file of controllers is wrong; they stay as they are", "file", p.file.path, "error", strings.TrimSpace(err.Error()))
		return
	}
	if !equalValues(next.read.Process, p.file.read.Process) {
		p.log.Warn("what the file says of the process is taken at the next start only", "file", p.file.path)
		next.read.Process = p.file.read.Process
	}
	var added, changed, removed int
	for i := range p.file.read.Controllers {
		before := &p.file.read.Controllers[i]
		if next.find(before.Name) < 0 {
			p.removeMember(ctx, before.Name)
			removed++
		}
	}
	for i := range next.read.Controllers {
		c, j := &next.read.Controllers[i], p.file.find(next.read.Controllers[i].Name)
		switch {
		case j < 0:
			added++
		case c.Equal(&p.file.read.Controllers[j]):
			next.options[i] = p.file.options[j]
			continue
		default:
			changed++
			if p.reconfigured(ctx, c, &p.file.read.Controllers[j], next.options[i]) {
				continue
			}
			p.removeMember(ctx, c.Name)
		}
		p.admit(ctx, p.want(next.options[i]), func(error) {})
	}
	p.file = next
	p.log.Info("controllers changed as the file says", "file", p.file.path, "added", added, "changed", changed, "removed", removed)
}

// find returns the place of a controller, -1 if there is none.
func (f *controllersFile) find(name string) int {
	for i := range f.read.Controllers {
		if f.read.Controllers[i].Name == name {
			return i
		}
	}
	return -1
}

// leaseName is the default name of the Lease of a file's controllers.
func (f *controllersFile) leaseName() string {
	base := filepath.Base(f.path)
	return "wasmctl-" + strings.TrimSuffix(base, filepath.Ext(base))
}
