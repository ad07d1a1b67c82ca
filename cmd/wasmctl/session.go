package main

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/probation"
)

// session is one module as a controller: it joins host and runtime. Its steps
// are load, checkAccess, checkSelectors, start; close undoes what was done.
type session struct {
	*process
	*identity // of the controller, whose fields come before those of the process's

	opts *controllerOptions
	log  *slog.Logger
	name string // of the controller

	settingsFile []byte            // what --config-file had in it last; serve's own once that runs
	moduleSum    [sha256.Size]byte // of the module's file when it was loaded

	module    *host.Module
	guests    applier.Module // what the controller acquires guests from: module, through runs
	cache     *controller.Cache
	api       *kubeapi.API     // under the policy of the first generation
	bound     []abi.Capability // what no later generation may have more than
	grantFile grant.File       // of --grant
	grantText []byte           // what that has in it
	found     knownKinds       // kinds that were found before
	kind      watched          // the kind that is reconciled: that of every generation
	plan      *plan            // of the live generation; before serve load's, then serve's own
	watching  *watches         // the controller's watches beside that of kind; as plan
	runs      *runs            // which generation runs what
	trials    *trials          // how the generations do
	canary    *tried           // what is tried on some objects, or nil; serve's own
	done      lastGood         // for --reconcile-on-swap=changed
	todo      chan command     // what serve is to do
	next      *command         // what it does next, whatever is in todo; serve's own
	hangup    chan os.Signal   // SIGHUP
	served    chan struct{}    // closed when serve has ended
	// restart ends the session; errAnew for another in its place. Set before serve.
	restart context.CancelCauseFunc

	file      moduleFile       // where the module is
	writeRest time.Duration    // how long the file may rest while it is written
	waits     func(why string) // told what loading waits for; nil if nobody is

	counts *metrics.Controller // nil without --metrics-address
	unshow []func()            // undoes show

	limitsFor func(*abi.Manifest) host.Limits // of a generation with this manifest
	secrets   redact.Values                   // those that the module has seen

	observers []kubeapi.Observer // told of what runs ask the API for; set before load
	history   *history.Recorder  // the last runs
	writes    *writePrinter      // nil unless writes are printed
	denied    atomic.Uint64      // what runs asked for and the policy did not allow

	probation probation.Config   // of modules that are swapped in; without Time there is none; serve's own
	overrides map[string]*string // settings of wasmctl config set, nil unsets; serve's own

	controller *controller.Controller
}

// load loads the module. Between its manifest being known and the end of
// loading, kinds are resolved, which waits for API server and CRDs.
func (s *session) load(ctx context.Context, wasm []byte) error {
	s.record()
	o := s.opts
	var err error
	if s.identity, err = s.actAs(o.rights.as); err != nil {
		return err
	}
	var settings map[string]string
	if s.settingsFile, settings, err = o.readSettings(); err != nil {
		return err
	}
	if s.grantFile, s.grantText, err = o.rights.readGrant(); err != nil {
		return err
	}
	cfg := host.Config{
		Name: o.name, Fallback: moduleName(o.module), Concurrency: o.concurrency, Limits: o.hostLimits(),
		CacheDir: s.cacheDir(), Logger: s.log, Settings: settings, Budget: s.budget,
		Secrets: &s.secrets, DrainTimeout: o.drain, KeepFor: max(host.DefaultKeepFor, o.probation+time.Minute),
	}
	o.cpu.apply(&cfg)
	cfg.Shares = s.shares
	if s.compiler != nil {
		cfg.Compiler = s.compiler.Compile
	}
	s.measure(&cfg)
	cfg.API = func(m *abi.Manifest) (host.API, error) {
		s.name, s.limitsFor = cfg.NameFor(m), cfg.LimitsFor
		return s.connectModule(ctx, m)
	}
	if s.module, err = host.Load(ctx, wasm, cfg); err != nil {
		return moduleError(err)
	}
	s.file.move(o.module)
	s.writeRest = writeRest
	s.runs = newRuns(s.module)
	s.runs.use(s.module.Generation(), s.api)
	s.guests, s.trials, s.todo = s.runs, newTrials(s.module), make(chan command)
	s.served, s.hangup = make(chan struct{}), make(chan os.Signal, 1)
	s.probation.Time, s.done.on = o.probation, o.reconcileOnSwap == reconcileChanged
	s.runs.onRun, s.moduleSum = s.trials.begin, sha256.Sum256(wasm)
	s.runs.onCall = s.began
	if s.tracing != nil {
		s.runs.onReturn = func(id string) { s.history.Returned(id, time.Now()) }
	}
	return nil
}

// connectModule resolves the kinds of manifest and flags and builds the
// module's view of the cluster.
func (s *session) connectModule(ctx context.Context, m *abi.Manifest) (host.API, error) {
	err := s.opts.rights.names(s.grantFile, s.name)
	if err != nil {
		return nil, err
	}
	if s.kind, err = s.resolveKind(ctx, m); err != nil {
		return nil, err
	}
	if s.plan, err = s.planFor(ctx, m); err != nil {
		return nil, err
	}
	if err := s.elect(); err != nil {
		return nil, err
	}
	if err := s.bindRights(ctx); err != nil {
		return nil, err
	}
	s.cache = controller.NewCache()
	if s.opts.rights.audit != "" {
		s.observers = append(s.observers, s.newAudit().observe)
	}
	cfg := kubeapi.Config{
		Client: s.client, Resolver: s.resolver, Controller: s.name, Policy: s.plan.policy, Logger: s.log, Cache: s.cache, Children: s.cache,
		Observer: kubeapi.Observers(s.observers...), Limits: apiLimits(s.limitsFor(m)), Secrets: &s.secrets,
	}
	if s.elector != nil {
		cfg.Gate = s.elector.Gate()
	}
	if s.api, err = kubeapi.New(cfg); err != nil {
		return nil, err
	}
	if s.opts.rights.audit != "" {
		s.api = s.api.WithAudit()
	}
	s.api = s.api.WithDryRun(kubeapi.DryRun(s.opts.rights.dryRun))
	return tap{s.api, s}, nil
}

// close stops what was started.
func (s *session) close() error {
	s.hide()
	if s.module == nil {
		return nil
	}
	if s.canary != nil { // serve has ended
		s.canary.candidate.Discard()
		s.canary = nil
	}
	return s.module.Close(context.Background())
}
