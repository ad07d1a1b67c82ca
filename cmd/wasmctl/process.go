// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/follow"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/guestprocess"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/httpserver"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// process runs the controllers of flags or a file.
type process struct {
	*runOptions

	log     *slog.Logger
	rt      *wasmctl.Runtime
	server  *serve.Server   // nil unless the command is wasmctl serve
	printed *printer.Writes // of all controllers

	mu        sync.Mutex
	followers map[string]*follow.Follower // by the controller's name in the file, or the module's path; guarded by mu
	wg        sync.WaitGroup              // of followers
}

// runProcess runs the controllers of the options until ctx ends. Closing force interrupts running
// reconciles.
func runProcess(ctx context.Context, o *runOptions, log *slog.Logger, force <-chan struct{}) (err error) {
	servers, err := httpserver.Listen(ctx, &o.process.HTTP, log)
	if err != nil {
		return err
	}
	defer servers.Close()
	options, err := o.runtimeOptions(ctx, log)
	if err != nil {
		return err
	}
	wrong, err := o.checkFiles(ctx)
	if err != nil {
		return err
	}
	cluster, err := connect(ctx, &o.process, o.streams, log)
	if err != nil {
		return errors.Join(err, wrong)
	}
	defer func() { err = errors.Join(err, cluster.close()) }()
	ctx, release := cluster.watch(ctx, log)
	defer release()
	if options.Hardening, err = o.hardened(&options, cluster.config, log); err != nil {
		return err
	}
	var server *serve.Server
	if o.server != nil {
		if server, err = o.server(cluster.config, log); err != nil {
			return err
		}
		options.Notes = server
	}
	rt, err := wasmctl.New(cluster.config, options)
	if err != nil {
		return err
	}
	defer servers.Serve(rt)()
	p := &process{runOptions: o, log: log, rt: rt, server: server, printed: printer.NewWrites(o.streams.out), followers: map[string]*follow.Follower{}}
	defer p.printed.Close()
	err = p.runUntilStopped(ctx, cluster.config, force)
	if cause := context.Cause(ctx); errors.Is(cause, errDevEnded) {
		return failure.Cluster.Wrap(cause) // the cause of all other errors
	}
	return err
}

// serveDeclared serves webhooks on the local control plane if a module has any.
func (o *runOptions) serveDeclared(ctx context.Context) {
	if !o.process.Dev || o.server != nil {
		return
	}
	for _, c := range o.controllers() {
		info, err := inspectModule(ctx, &o.process.Registry, c.Module.String(), outline) // checkFiles reports the error
		if err == nil && slices.ContainsFunc(info.Manifests(), func(m *abi.Manifest) bool { return len(m.Webhooks)+len(m.Conversions) > 0 }) {
			o.process.Webhooks.ServeLocally()
			return
		}
	}
}

// runtimeOptions returns the options of the Runtime.
func (o *runOptions) runtimeOptions(ctx context.Context, log *slog.Logger) (wasmctl.Options, error) {
	options := o.process.Options()
	options.InsecureRegistries = o.process.Registry.Insecure
	options.Logger, options.Version, options.CPUs, options.Tenants = log, version, cpus(), o.tenants
	compile := options.Compile
	options.Compile = func(ctx context.Context, job load.Compilation) error {
		defer o.streams.progress.Start("compiling a module").End()
		return compile(ctx, job)
	}
	var err error
	if options.CacheDir, err = flags.CacheDir(o.process.CacheDir); err != nil {
		log.Warn("compiled modules are not cached", "error", err.Error())
	}
	o.process.Registry.Logger, o.process.Registry.CacheDir = log, cmp.Or(options.CacheDir, "none")
	o.serveDeclared(ctx)
	if options.CacheDir != "" || len(o.memoDirs()) > 0 {
		if options.CacheKey, err = flags.CacheKey(); err != nil {
			log.Warn("no cache key: cached modules and remembered runs are not shared with other processes", "error", err.Error())
		}
	}
	options.Isolation = guestprocess.New(guestprocess.Config{Memory: subprocess.DefaultMemory(), CPUs: cpus(), Harden: o.process.Harden}).Of
	if options.Traces, err = newExporter(ctx, o.process.OTLPEndpoint, log); err != nil {
		return options, failure.Usage.Wrap(err)
	}
	group := o.process.Leader.Name
	if group == "" && len(o.modules) > 1 {
		group = flags.ModuleName(o.modules[0]) // its file may be wrong, and the others run nevertheless
	} else if group == "" && len(o.modules) == 1 && (options.Election != nil || o.process.Webhooks.Serves()) {
		info, err := inspectModule(ctx, &o.process.Registry, o.modules[0], outline)
		if err != nil {
			return options, err
		}
		controller := o.controller
		controller.Module.Set(o.modules[0])
		group = controllerName(&controller, info.Manifest)
		if options.Election != nil {
			options.Election.Name, options.Election.NameOfModule = o.process.Leader.LeaseName(group), controller.Name == ""
		}
	}
	options.Webhooks = o.process.Webhooks.Options(group)
	return options, nil
}

// run runs the controllers until ctx ends.
func (p *process) run(ctx context.Context, force <-chan struct{}) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	services, stop := context.WithCancel(context.WithoutCancel(ctx)) // they answer until run returns
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	defer giveUp(nil)
	wg.Go(func() {
		select {
		case <-force:
			p.rt.Interrupt()
		case <-services.Done():
		}
	})
	if p.process.Socket != "none" { // first: loading may wait for the cluster
		wg.Go(func() { p.serveAdmin(services) })
	}
	if p.streams.progress.OnTerminal() { // elsewhere, the log has it
		wg.Go(func() { p.showSync(ctx) })
	}
	err := p.load(ctx, giveUp)
	if err != nil {
		giveUp(err) // Run closes what is already loaded
		err = errors.Join(err, p.rt.Run(ctx))
		p.wg.Wait()
		return err
	}
	if p.file != nil {
		wg.Go(func() { p.followFile(ctx) })
	}
	wg.Go(func() { p.reloadOnHangup(ctx) })
	err = p.rt.Run(ctx)
	giveUp(nil)
	p.wg.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errNoneStarts) {
		return cause
	}
	return err
}

// load loads the controllers. If there is only one and no file, its error ends the process. Otherwise,
// each controller is retried until it starts. If the first attempts of all of them fail, load calls
// fail with the errors.
func (p *process) load(ctx context.Context, fail func(error)) error {
	if p.server != nil {
		return p.server.Start(ctx, p.rt)
	}
	controllers := p.controllers()
	if len(controllers) == 1 && p.file == nil {
		f := p.follower(controllers[0])
		var err error
		if f.Controller, err = p.rt.LoadFunc(ctx, f.Source); err == nil {
			debug.FreeOSMemory() // loading leaves garbage of twice the module's size, and little other memory is in use yet
			p.follow(ctx, controllers[0].Module.String(), f)
		}
		return err
	}
	failed := make(chan error, len(controllers))
	for _, c := range controllers {
		f, err := p.add(ctx, c)
		if err != nil {
			return err
		}
		p.wg.Go(func() { failed <- f.Controller.Started(ctx) })
	}
	p.wg.Go(func() {
		var errs []error
		for range controllers {
			if err := <-failed; err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) < len(controllers) { // the others run
			debug.FreeOSMemory() // as above, once for all controllers
			return
		}
		fail(fmt.Errorf("%w: %w", errNoneStarts, errors.Join(errs...)))
	})
	return nil
}

// add adds a controller, and retries until it starts.
func (p *process) add(ctx context.Context, c *v1alpha1.ControllerSpec) (*follow.Follower, error) {
	f := p.follower(c)
	name := cmp.Or(c.Name, flags.ModuleName(c.Module.String()))
	var err error
	if f.Controller, err = p.rt.Ensure(name, f.Source); err != nil {
		return nil, err
	}
	p.follow(ctx, cmp.Or(c.Name, c.Module.String()), f)
	return f, nil
}

// follower returns a Follower of the files of a controller.
func (p *process) follower(c *v1alpha1.ControllerSpec) *follow.Follower {
	return follow.New(c, &p.process.Registry, func(c *v1alpha1.ControllerSpec, files *flags.Files) wasmctl.ControllerOptions {
		o := flags.Options(c, files, p.streams.in, p.process.Dev)
		o.Module.Verify, _ = p.process.Registry.VerifyKeys.Verify() // if it fails, Open refuses each module
		if p.writes || c.Mode != v1alpha1.ModeEnforce && c.Mode != "" {
			o.OnWrite = p.printed.Print
		}
		return o
	})
}

// serveAdmin serves the admin socket. If that fails, the process runs without it.
func (p *process) serveAdmin(ctx context.Context) {
	path := cmp.Or(p.process.Socket, admin.DefaultPath(os.Getpid()))
	p.log.Debug("serving the admin socket", "socket", path)
	service := p.rt.Admin()
	if p.server != nil {
		service = p.server.Admin(service)
	}
	if err := admin.New(path, service, p.log).Run(ctx); err != nil {
		p.log.Warn("cannot serve the admin socket; wasmctl status and other commands do not work with this process", "error", err.Error())
	}
}

// cpus returns the number of guests that may compute at the same time. GOMAXPROCS is one higher: the
// additional thread waits for the network and timers, and the kernel runs a goroutine that they wake.
// Without it, that goroutine would wait for a time slice of each guest. If the user has set
// GOMAXPROCS, it stays unchanged. After a call of runtime.GOMAXPROCS, Go no longer follows changes of
// the container's CPU limit; these need a restart.
var cpus = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
	return n
})
