package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/compiler"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/manager"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// process is what the controllers of one process share.
type process struct {
	opts    *processOptions
	log     *slog.Logger
	started time.Time
	tracing *tracing // nil where no traces are written

	dev       *devcluster.Cluster // nil unless --dev
	*identity                     // the process's own
	others    identities          // of --as
	resolver  *kubeapi.Resolver
	pool      *runner.Pool       // nil unless --workers
	budget    *host.Budget       // nil unless --memory-budget
	shares    *host.Shares       // of the processors
	compiler  *compiler.Compiler // nil where this process compiles
	elector   *leader.Elector    // nil unless --leader-elect
	manager   *manager.Manager
	members   members
	monitor   monitor
	onSwap    func(controller, result string) // told what came of each swap; nil: nobody. Set before run
	file      *controllersFile                // nil without -f
}

// connect finds the cluster; it sends nothing to it yet.
func (p *process) connect(ctx context.Context) error {
	var err error
	var config *rest.Config
	if p.opts.dev {
		config, err = p.startDev(ctx)
	} else {
		config, err = loadConfig(p.opts.kubeconfig, p.opts.context)
	}
	if err != nil {
		return withCode(exitCluster, err)
	}
	config.QPS = -1 // the API server's priority and fairness decides
	config.UserAgent = "wasmctl/" + version
	if p.identity, err = newIdentity(config, p.log); err != nil {
		return withCode(exitCluster, err)
	}
	p.resolver = kubeapi.NewResolver(p.client, p.log)
	return p.bounds()
}

// bounds makes what bounds the process as a whole.
func (p *process) bounds() error {
	p.compiler = p.opts.compile.compiler()
	p.shares = host.NewShares(processors())
	if p.opts.budgetBytes > 0 {
		p.budget = host.NewBudget(p.opts.budgetBytes)
	}
	if p.opts.workers == 0 {
		return nil
	}
	var err error
	p.pool, err = runner.NewPool(p.opts.workers)
	return withCode(exitUsage, err)
}

// elect makes the part that this process takes in an election, when the name of
// its first controller is known.
func (s *session) elect() error {
	if s.elector != nil || !s.process.opts.leader.elect { // others that load at once read it
		return nil
	}
	var err error
	s.elector, err = s.process.opts.leader.elector(s.process.restConfig, s.name, s.log) // the process's own, whatever --as says
	return withCode(exitUsage, err)
}

// electSeveral is elect for several controllers: the Lease has a name of its
// own.
func (p *process) electSeveral() error {
	var err error
	p.elector, err = p.opts.leader.elector(p.restConfig, "", p.log)
	return withCode(exitUsage, err)
}

// leaseName returns the name of the Lease, once p runs: that of its only
// controller, or of several that are loaded later.
func (p *process) leaseName() string {
	first := ""
	for _, s := range p.loaded() {
		first = s.name
	}
	return p.opts.leader.leaseName(first)
}

// cacheDir returns where compiled modules are kept, or "".
func (p *process) cacheDir() string {
	switch p.opts.cacheDir {
	case "none":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			p.log.Warn("compiled modules are not kept: name a directory with --cache-dir", "error", err.Error())
			return ""
		}
		return filepath.Join(dir, "wasmctl", "modules")
	}
	return p.opts.cacheDir
}

// run runs the members until ctx ends.
func (p *process) run(ctx context.Context, force <-chan struct{}) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	p.manager = manager.New(manager.Config{Elector: p.elector, OnEnd: p.controllerEnded, Logger: p.log})
	for _, m := range p.members.all() {
		if err := m.startLoaded(); err != nil {
			return err
		}
	}
	p.monitor.begin(p)
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop() // after the controllers: they are asked until the end
	settled := p.members.expect(giveUp)
	for _, m := range p.members.all() {
		p.admit(ctx, m, settled)
	}
	if p.opts.socket != "none" {
		wg.Go(func() { p.serveAdmin(services) })
	}
	if p.file != nil {
		wg.Go(func() { p.followFile(ctx) })
	}
	err := p.manager.Run(ctx, force)
	giveUp(nil)
	p.members.wg.Wait()
	switch cause := context.Cause(ctx); {
	case errors.Is(err, leader.ErrLost):
		return withCode(exitLost, err)
	case errors.Is(cause, errNoneStarts):
		return cause
	}
	return err
}

// serveAdmin serves the socket. A process without one can do its work.
func (p *process) serveAdmin(ctx context.Context) {
	path := p.opts.socket
	if path == "" {
		path = admin.DefaultPath(os.Getpid())
	}
	p.log.Debug("serving wasmctl status, trigger and pause", "socket", path)
	if err := admin.New(path, p, p.log).Run(ctx); err != nil {
		p.log.Warn("wasmctl status, trigger and pause do not work with this process", "error", err.Error())
	}
}

func (p *process) controllerEnded(name string, err error) {
	if err != nil {
		p.log.Error("controller ended", "controller", name, "error", err.Error())
		return
	}
	p.log.Info("controller ended", "controller", name)
}

// close stops what was started, in reverse.
func (p *process) close() error {
	var errs []error
	for _, s := range p.loaded() {
		errs = append(errs, s.close())
	}
	if p.dev != nil {
		errs = append(errs, p.dev.Stop())
	}
	return errors.Join(append(errs, p.tracing.close())...)
}

// processors is how many guests compute on at once. Go gets one more, which none
// of them holds for long: it waits for the network and for timers, and whom these
// wake is served by the kernel's scheduler and not after a slice of each guest. It
// stays as it is where the user has said how many there are to be. Go no longer
// follows a change of the container's limit then: that takes a new start.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
	return n
})
