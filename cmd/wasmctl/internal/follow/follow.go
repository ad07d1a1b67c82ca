// SPDX-License-Identifier: Apache-2.0

// Package follow applies changes of a controller's files: it swaps in a changed module, passes changed
// settings to the module, and restarts the controller after a change of its grant.
package follow

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// Follower follows the files of one controller. It is safe for concurrent use.
type Follower struct {
	// Controller is set before Run.
	Controller *wasmctl.Controller

	from    *flags.Registry
	options func(*flags.Files) wasmctl.ControllerOptions
	rest    time.Duration // the maximum pause while the module's file is being written

	mu    sync.Mutex
	spec  v1alpha1.ControllerSpec // guarded by mu
	files *flags.Files            // the result of the last read; guarded by mu
	sum   [sha256.Size]byte       // of the module's file at the last read; guarded by mu
	other chan struct{}           // closed when the spec names other files or options; guarded by mu
	tried string                  // the last digest that was swapped in or refused; guarded by mu
}

// New returns a Follower of the files of a spec. It reads modules from the Registry. options returns
// the controller options for a spec and its files.
func New(s *v1alpha1.ControllerSpec, from *flags.Registry, options func(*v1alpha1.ControllerSpec, *flags.Files) wasmctl.ControllerOptions) *Follower {
	o := &Follower{spec: *s, from: from, files: &flags.Files{}, other: make(chan struct{}), rest: writeRest}
	o.options = func(files *flags.Files) wasmctl.ControllerOptions { return options(&o.spec, files) }
	return o
}

// Source reads the files and returns module and options, for wasmctl.Runtime.
func (o *Follower) Source() (wasmctl.Module, wasmctl.ControllerOptions, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	files, err := flags.ReadFiles(&o.spec)
	if err != nil {
		return nil, wasmctl.ControllerOptions{}, err
	}
	o.files = files
	return o.open(o.spec.Module.String()), o.options(files), nil
}

// open returns the module of a file or a registry.
func (o *Follower) open(module string) wasmctl.Module {
	if m, ok := o.from.Open(module).(wasmctl.File); !ok {
		return o.from.Open(module)
	} else {
		return noting{m, o}
	}
}

// noting is a module's file. Reading it updates the checksum of the Follower.
type noting struct {
	wasmctl.File

	follower *Follower
}

func (n noting) Read(context.Context) ([]byte, error) {
	wasm, sum, err := n.ReadSum()
	n.follower.mu.Lock()
	defer n.follower.mu.Unlock()
	if err == nil && string(n.File) == n.follower.spec.Module.String() {
		n.follower.sum = sum
	}
	return wasm, err
}

// Run follows the files until ctx ends.
func (o *Follower) Run(ctx context.Context) {
	_ = o.Controller.Started(ctx) // a failed start is retried
	for ctx.Err() == nil {
		o.mu.Lock()
		f, files, sum, other := o.spec, o.files, o.sum, o.other
		o.mu.Unlock()
		here, leave := context.WithCancel(ctx)
		var wg sync.WaitGroup
		o.follow(here, &wg, &f, files, sum)
		select {
		case <-other:
		case <-ctx.Done():
		}
		leave()
		wg.Wait()
	}
}

// follow starts to follow the files of a spec, which had this content, until ctx ends.
func (o *Follower) follow(ctx context.Context, wg *sync.WaitGroup, f *v1alpha1.ControllerSpec, files *flags.Files, sum [sha256.Size]byte) {
	if f.ConfigFile != "" {
		wg.Go(func() {
			o.watch(ctx, f.ConfigFile, files.SettingsText, o.configure, "cannot read settings; keeping the old ones")
		})
	}
	if f.GrantFile != "" {
		wg.Go(func() { o.watch(ctx, f.GrantFile, files.GrantText, o.regrant, keepsRights) })
	}
	if path := f.Module.String(); (f.Module.Watch == nil || *f.Module.Watch) && !oci.IsRef(path) && !oci.IsArchive(path) {
		wg.Go(func() { o.watchModule(ctx, path, sum) })
	}
	if every := f.Module.Follow.Or(0); every > 0 {
		wg.Go(func() { o.followTag(ctx, every) })
	}
}

func (o *Follower) log() *slog.Logger {
	return o.Controller.Logger().With("controller", o.Controller.Name())
}

// watch calls changed whenever the content of a file changes. Read errors are logged with the message
// otherwise.
func (o *Follower) watch(ctx context.Context, path string, content []byte, changed func(context.Context, []byte), otherwise string) {
	file := filewatch.File{
		Path: path, Content: content, MaxSize: flags.MaxNamed, OnChange: changed,
		OnError:   func(err error) { o.log().Warn(otherwise, "error", err.Error()) },
		OnPolling: o.polls,
	}
	_ = file.Run(ctx) // OnPolling has logged the error
}

// polls logs why the system does not report changes of a file.
func (o *Follower) polls(err error) {
	o.log().Info("polling the file for changes", "because", err.Error())
}

// configure passes the settings of a changed file to the module.
func (o *Follower) configure(ctx context.Context, content []byte) {
	o.mu.Lock()
	settings, err := flags.ParseSettings(o.spec.ConfigFile, content)
	if err == nil {
		o.files.Settings = settings
		settings = flags.Settings(&o.spec, o.files)
	}
	o.mu.Unlock()
	if err == nil {
		err = o.Controller.Configure(ctx, texts(settings))
	}
	o.logSettings(err)
}

func (o *Follower) logSettings(err error) {
	switch {
	case err == nil || waits(err): // the next start reads them
	case errors.Is(err, wasmctl.ErrRefused):
		o.log().Warn("module refused new settings; keeping the old ones", "error", err.Error())
	default:
		o.log().Warn("invalid settings; keeping the old ones", "error", err.Error())
	}
}

// waits reports whether a change failed only because the controller does not run: its next start
// applies the change.
func waits(err error) bool {
	return errors.Is(err, wasmctl.ErrNotRunning) || errors.Is(err, wasmctl.ErrStopping) || errors.Is(err, context.Canceled)
}

const keepsRights = "cannot use the new grant; keeping the old one"

// regrant restarts the controller if its rights in the grant file have changed, because rights also
// limit its watches and its cache. An invalid file changes nothing.
func (o *Follower) regrant(_ context.Context, content []byte) {
	o.mu.Lock()
	path, before := o.spec.GrantFile, o.files
	o.mu.Unlock()
	name := o.Controller.Name()
	next, err := plan.ParseGrant(path, content)
	if err == nil {
		_, err = next.Rules(name)
	}
	if err != nil {
		o.log().Warn(keepsRights, "error", err.Error())
		return
	}
	if reflect.DeepEqual(next.File.Of(name), before.Grant.File.Of(name)) {
		return
	}
	o.log().Info("grant changed; restarting controller", "file", path)
	o.Controller.Restart()
}

// Reload swaps in the current content of the module's file, or the current module of its tag.
func (o *Follower) Reload(ctx context.Context) {
	o.mu.Lock()
	path := o.spec.Module.String()
	o.mu.Unlock()
	if oci.IsRef(path) {
		_ = o.poll(ctx, path) // poll has logged the error
		return
	}
	_ = o.swap(ctx, o.from.Open(path), "module file changed")
}

// swap swaps in a module. It logs the error, except if the swap was only too early or too late.
func (o *Follower) swap(ctx context.Context, m wasmctl.Module, why string) error {
	_, err := o.Controller.Swap(ctx, m, wasmctl.SwapOptions{Why: why})
	switch {
	case err == nil || errors.Is(err, wasmctl.ErrPreparing) || waits(err) || ctx.Err() != nil:
	case errors.Is(err, wasmctl.ErrSameModule):
		o.log().Info("module file unchanged")
	default:
		digest := ""
		if wasm, readErr := m.Read(ctx); readErr == nil {
			digest = humanize.Digest(load.DigestOf(wasm))
		}
		o.log().Warn("module not swapped in; keeping the running one", "digest", digest, "error", err.Error())
	}
	return err
}

// Change brings a running controller to another spec: by new settings, or with restart by a restart with
// the live module, and by a swap if the spec names another module. If the module is refused, the old one
// keeps running.
func (o *Follower) Change(ctx context.Context, next *v1alpha1.ControllerSpec, restart bool) {
	o.mu.Lock()
	moved := o.spec.Module.String() != next.Module.String()
	o.spec = *next
	if restart {
		if files, err := flags.ReadFiles(next); err == nil { // otherwise the start reports the error
			o.files = files
		}
	}
	settings := texts(flags.Settings(&o.spec, o.files))
	if moved || restart {
		close(o.other)
		o.other = make(chan struct{})
	}
	o.mu.Unlock()
	if restart {
		o.Controller.Restart()
	} else {
		o.logSettings(o.Controller.Configure(ctx, settings))
	}
	if moved {
		_ = o.swap(ctx, o.open(next.Module.String()), "the controllers file names another module")
	}
}

// texts returns validated settings in the form for the module.
func texts(c v1alpha1.Config) map[string]string {
	out, _ := c.Texts()
	return out
}
