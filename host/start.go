// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Load checks, compiles and instantiates a module: when it returns, the module has run its
// start code and can be acquired. ctx bounds loading only.
//
// An error that matches load.ErrInvalidModule is the module's fault and names every problem
// that was found. Any other error comes from ctx, cfg or cfg.API.
func Load(ctx context.Context, wasm []byte, cfg Config) (*Module, error) {
	cfg, bin, err := read(wasm, cfg)
	if err != nil {
		return nil, err
	}
	if err := bin.CheckController(); err != nil {
		return nil, load.Invalid(cfg.NameFor(nil), err)
	}
	m := newModule(cfg)
	rev, err := m.load(ctx, bin, load.MaxWorkers, nil)
	if err != nil {
		return nil, err
	}
	if err := rev.start(ctx, cfg.API); err != nil {
		rev.retire(0)
		return nil, err
	}
	// The name and the concurrency stay, whatever later manifests contain.
	m.name, m.cfg.Name = rev.spec.Name, rev.spec.Name
	// The concurrency of a manifest is bounded, because each run at a time is an instance.
	concurrency := cmp.Or(cfg.Concurrency, min(rev.spec.Manifest.Concurrency, abi.MaxConcurrency), DefaultConcurrency)
	if asked := rev.spec.Manifest.Concurrency; cfg.Concurrency == 0 && asked > concurrency {
		rev.spec.Log.Warn("manifest requests a higher concurrency than it may have; to raise it, use --concurrency", "asked", asked, "given", concurrency)
	}
	m.shared.slots = make(slots, concurrency)
	rev.state, rev.since = RevisionLive, time.Now()
	m.last.Store(rev)
	m.current.Store(rev)
	return m, nil
}

// Describe runs the describe export of a module in a sandbox without host functions other
// than log, and returns the manifest. It ignores the manifest section: tools call it to write
// one.
func Describe(ctx context.Context, wasm []byte, cfg Config) (*abi.Manifest, error) {
	manifests, errs, err := DescribeEach(ctx, wasm, cfg, cfg.Controller)
	if err != nil {
		return nil, err
	}
	return manifests[0], errs[0]
}

// DescribeEach is Describe for each of the controllers of a module, which is loaded once. It
// returns a manifest or an error for each of them.
func DescribeEach(ctx context.Context, wasm []byte, cfg Config, controllers ...string) (manifests []*abi.Manifest, errs []error, err error) {
	if cfg.API == nil {
		// The host that runs the module checks the requirements of an existing manifest;
		// nothing is connected here.
		cfg.API = func(*abi.Manifest) (operation.API, error) { return nil, nil }
	}
	cfg, bin, err := read(wasm, cfg)
	if err != nil {
		return nil, nil, err
	}
	if !bin.Exports(abi.ExportDescribe) {
		return nil, nil, load.Invalid(cfg.NameFor(nil), fmt.Errorf("export[%s]: missing: the module has no manifest", abi.ExportDescribe))
	}
	m := newModule(cfg)
	rev, err := m.load(ctx, bin, load.MaxWorkers, nil)
	if err != nil {
		return nil, nil, err
	}
	defer rev.retire(0)
	for _, controller := range controllers {
		rev.spec.Program = cmp.Or(controller, rev.spec.Name)
		man, _, err := rev.describe(ctx)
		manifests, errs = append(manifests, man), append(errs, err)
	}
	return manifests, errs, nil
}

// read makes every check that needs no compiler.
func read(wasm []byte, cfg Config) (Config, *load.Module, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return cfg, nil, err
	}
	bin, problems := load.Read(wasm, load.Checks{Controller: cmp.Or(cfg.Controller, cfg.Name), Limits: cfg.Limits, API: cfg.API != nil})
	if len(problems) > 0 {
		man, _, _ := bin.Manifest() // the problems contain the error
		return cfg, nil, &load.InvalidError{Name: cfg.NameFor(man), Problems: problems}
	}
	return cfg, bin, nil
}

// newModule returns a module without a revision. cfg has its defaults.
func newModule(cfg Config) *Module {
	m := &Module{cfg: cfg, name: cfg.NameFor(nil), shared: &shared{hookSlots: make(slots, hookSlots), admissionSlots: make(slots, admissionSlots), closing: make(chan struct{})}}
	m.shared.use.Tenant, m.shared.use.Short = cfg.Process.Tenant, cfg.Process.CPUs.ShortCalls(cfg.Process.Tenant)
	m.values.Store(&cfg.Settings)
	return m
}

// load compiles a checked module into a new revision, unless accept refuses that first.
// accept may be nil.
func (m *Module) load(ctx context.Context, bin *load.Module, workers int, accept func() error) (*revision, error) {
	number := m.begin(bin.Digest())
	if accept != nil {
		if err := accept(); err != nil {
			m.end(number)
			return nil, err
		}
	}
	c := load.Compiler{
		Options: m.cfg.Code, Name: m.name, Tenant: m.cfg.Process.Tenant, Account: m.cfg.Process.codeAccount(), Log: revisionLog(m.cfg, m.name, number), Limits: m.cfg.Limits,
		Shared: m.cfg.Process.Codes.sharedCode(), Link: instance.HostFunc, Isolated: m.cfg.Isolation != nil, Workers: workers, Yield: m.current.Load() != nil,
	}
	code, err := c.Compile(ctx, bin)
	if err != nil {
		m.end(number)
		return nil, err
	}
	p := &program{Code: code, home: here{code, m.cfg.Process.Codes.sharedImages()}}
	if m.cfg.Isolation != nil {
		p.home = isolate.NewCode(m.cfg.Isolation, code, workers, share.NewAccount(m.cfg.Process.Budget, m.cfg.Process.Tenant, share.Code))
	}
	p.refs.Store(1)
	return m.add(number, p), nil
}

// start finds the manifest, makes the first instance and connects the API.
func (r *revision) start(ctx context.Context, connect func(*abi.Manifest) (operation.API, error)) error {
	man, unknown, err := r.findManifest(ctx)
	if err != nil {
		return err
	}
	r.configure(man)
	r.warnOf(man, unknown)
	if err := r.settings.Load().CheckSize(); err != nil {
		return fmt.Errorf("module[%s]: %w", r.spec.Name, err)
	}
	in, err := r.newInstance(ctx, r.settings.Load())
	if err != nil {
		return r.startError(err)
	}
	r.park(in)
	r.program.Rest()
	if connect == nil {
		return nil
	}
	// Last, because it may wait for a cluster: a module that does not start is refused
	// without one.
	r.spec.API, err = connect(man)
	return err
}

// findManifest returns the manifest of the section or of describe, or an empty one.
func (r *revision) findManifest(ctx context.Context) (man *abi.Manifest, unknown []string, err error) {
	info, hooks := r.program.Info, r.program.Hooks
	if info.Manifest != nil {
		return info.Manifest, info.UnknownKeys, nil
	}
	if !hooks[abi.ExportDescribe] {
		return &abi.Manifest{}, info.UnknownKeys, nil
	}
	if man, unknown, err = r.describe(ctx); err != nil {
		return nil, nil, err
	}
	problems := load.CheckManifest(man, r.caps, func(name string) bool { return hooks[name] })
	problems = append(problems, load.CheckStartSize(info.Memory, r.cfg.LimitsFor(man).Memory)...)
	if len(problems) > 0 {
		return nil, nil, &load.InvalidError{Name: r.cfg.NameFor(man), Problems: load.ShortProblems(problems)}
	}
	info.Manifest, info.UnknownKeys = man, unknown
	return man, unknown, nil
}

// warnOf logs doubts about a manifest.
func (r *revision) warnOf(man *abi.Manifest, unknown []string) {
	log := r.spec.Log
	if len(unknown) > 0 {
		log.Warn("ignoring unknown keys in the manifest", "keys", unknown)
	}
	for _, warning := range man.Warnings() {
		log.Warn("manifest can lead to trouble", "warning", warning)
	}
	for _, name := range r.moreAsked {
		log.Warn("manifest requests more than the limits allow; to raise a limit, use --limit", "limit", name,
			"asked", man.Limits.Get(name), "given", share.LimitText(name, r.spec.Limits.Get(name)))
	}
}

// describe calls the guest's describe in an instance of its own, which is made before the
// manifest's limits are known.
func (r *revision) describe(ctx context.Context) (*abi.Manifest, []string, error) {
	in, err := r.maker.Open(ctx)
	if err != nil {
		return nil, nil, r.startError(err)
	}
	defer in.Close(ctx)
	man, unknown, err := in.Describe(ctx)
	if err != nil {
		return nil, nil, r.startError(err)
	}
	return man, unknown, nil
}

// startError distinguishes a guest that fails in its start code from trouble of the host.
func (r *revision) startError(err error) error {
	if _, ok := errors.AsType[*abi.CallError](err); ok {
		return &load.InvalidError{Name: r.spec.Name, Problems: []string{text.Ends(err.Error(), text.MaxError)}, Err: err} // the guest's stack has lines
	}
	return fmt.Errorf("module[%s]: start: %w", r.spec.Name, err)
}
