package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// compilationWorkers bounds the CPUs that the first load takes. With one,
// wazero would not look at the context.
const compilationWorkers = 2

// Load checks, compiles and instantiates a module: when it returns, the module
// has run its start code and can be acquired. ctx bounds loading only.
//
// An error that matches ErrInvalidModule is the module's fault and names every
// problem found; any other is of ctx, of cfg or of cfg.API.
func Load(ctx context.Context, wasm []byte, cfg Config) (*Module, error) {
	cfg, bin, err := prepare(wasm, cfg)
	if err != nil {
		return nil, err
	}
	if err := bin.checkController(cfg); err != nil {
		return nil, err
	}
	m := newModule(cfg)
	g, err := m.load(ctx, wasm, bin, compilationWorkers, nil)
	if err != nil {
		return nil, err
	}
	if err := g.start(ctx, cfg.API); err != nil {
		g.retire(0)
		return nil, err
	}
	// The name and the concurrency stay, whatever later manifests say.
	m.name, m.cfg.Name = g.name, g.name
	concurrency := cfg.concurrencyFor(g.manifest)
	if asked := g.manifest.Concurrency; cfg.Concurrency == 0 && asked > concurrency {
		g.log.Warn("manifest requests a higher concurrency than it may have; to raise it, use --concurrency", "asked", asked, "given", concurrency)
	}
	m.shared.slots = make(slots, concurrency)
	g.state, g.since = RevisionLive, time.Now()
	m.last.Store(g)
	m.current.Store(g)
	return m, nil
}

// Describe runs the describe export of a module in a sandbox without host
// functions other than log, clocks and random, and returns the manifest. It
// does not look at the manifest section: it is what a tool calls to write one.
func Describe(ctx context.Context, wasm []byte, cfg Config) (*abi.Manifest, error) {
	manifests, errs, err := DescribeEach(ctx, wasm, cfg, cfg.Controller)
	if err != nil {
		return nil, err
	}
	return manifests[0], errs[0]
}

// DescribeEach is Describe as each of the controllers of a module, which is loaded once:
// a manifest or an error for each of them.
func DescribeEach(ctx context.Context, wasm []byte, cfg Config, controllers ...string) (manifests []*abi.Manifest, errs []error, err error) {
	if cfg.API == nil {
		// The host that runs the module checks what an existing manifest requires;
		// nothing is connected here.
		cfg.API = func(*abi.Manifest) (API, error) { return nil, nil }
	}
	cfg, bin, err := prepare(wasm, cfg)
	if err != nil {
		return nil, nil, err
	}
	if !bin.exportsFunc(abi.ExportDescribe) {
		return nil, nil, invalid(cfg.NameFor(nil), fmt.Errorf("export[%s]: missing: the module has no manifest", abi.ExportDescribe))
	}
	m := newModule(cfg)
	g, err := m.load(ctx, wasm, bin, compilationWorkers, nil)
	if err != nil {
		return nil, nil, err
	}
	defer g.retire(0)
	for _, g.cfg.Controller = range controllers {
		man, _, err := g.describe(ctx)
		manifests, errs = append(manifests, man), append(errs, err)
	}
	return manifests, errs, nil
}

// prepare does every check that needs no compiler.
func prepare(wasm []byte, cfg Config) (Config, *binaryModule, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return cfg, nil, err
	}
	if size := int64(len(wasm)); size > cfg.MaxModuleSize {
		return cfg, nil, invalid(cfg.NameFor(nil), fmt.Errorf("is %d bytes long, the limit is %d", size, cfg.MaxModuleSize))
	}
	bin, err := parseModule(wasm)
	if err != nil {
		return cfg, nil, invalid(cfg.NameFor(nil), err)
	}
	bin.controller = cmp.Or(cfg.Controller, cfg.Name)
	man, _, _ := bin.manifest() // manifestProblems has the error
	problems := bin.problems(cfg.LimitsFor(man).Memory)
	problems = append(problems, bin.manifestProblems(capNames(cfg.API != nil))...)
	if len(problems) > 0 {
		return cfg, nil, &InvalidError{Name: cfg.NameFor(man), Problems: shortProblems(problems)}
	}
	return cfg, bin, nil
}

// newModule returns a module without a revision. cfg has its defaults.
func newModule(cfg Config) *Module {
	m := &Module{cfg: cfg, name: cfg.NameFor(nil), shared: &shared{hookSlots: make(slots, hookSlots), closing: make(chan struct{})}}
	m.values.Store(&cfg.Settings)
	return m
}

// load compiles checked bytes into a new revision, unless accept, which may be nil,
// refuses that before.
func (m *Module) load(ctx context.Context, wasm []byte, bin *binaryModule, workers int, accept func() error) (*revision, error) {
	number := m.begin(bin.digestOf(wasm))
	if accept != nil {
		if err := accept(); err != nil {
			m.end(number)
			return nil, err
		}
	}
	c := compiler{cfg: m.cfg, name: m.name, log: revisionLog(m.cfg, m.name, number), workers: workers, yield: m.current.Load() != nil}
	code, err := c.compile(ctx, wasm, bin)
	if err != nil {
		m.end(number)
		return nil, err
	}
	return m.add(number, code), nil
}

// start finds the manifest, makes the first instance and connects the API.
func (g *revision) start(ctx context.Context, connect func(*abi.Manifest) (API, error)) error {
	info := g.code.info
	man, unknown := info.Manifest, info.UnknownKeys
	if man == nil && g.code.hooks[abi.ExportDescribe] {
		var err error
		if man, unknown, err = g.describe(ctx); err != nil {
			return err
		}
		problems := append(checkRequires(man, g.caps), checkHooks(man, func(name string) bool { return g.code.hooks[name] })...)
		problems = append(problems, checkStartSize(info.Memory, g.cfg.LimitsFor(man).Memory)...)
		if len(problems) > 0 {
			return &InvalidError{Name: g.cfg.NameFor(man), Problems: shortProblems(problems)}
		}
		info.Manifest, info.UnknownKeys = man, unknown
	}
	if man == nil {
		man = &abi.Manifest{}
	}
	g.configure(man)
	if len(unknown) > 0 {
		g.log.Warn("ignoring unknown keys in the manifest", "keys", unknown)
	}
	for _, warning := range man.Warnings() {
		g.log.Warn("manifest can lead to trouble", "warning", warning)
	}
	for _, name := range g.moreAsked {
		g.log.Warn("manifest requests more than the limits allow; to raise a limit, use --limit", "limit", name,
			"asked", man.Limits.Get(name), "given", LimitText(name, g.limits.Get(name)))
	}
	if err := g.settings.Load().checkSize(); err != nil {
		return fmt.Errorf("module[%s]: %w", g.name, err)
	}
	in, err := g.newInstance(ctx, g.settings.Load())
	if err != nil {
		return g.startError(err)
	}
	g.park(in)
	g.code.rest()
	if connect == nil {
		return nil
	}
	// Last, because it may wait for a cluster: a module that does not start is
	// refused without one.
	g.api, err = connect(man)
	return err
}

// describe calls the guest's describe on an instance of its own, made before
// the manifest's limits are known.
func (g *revision) describe(ctx context.Context) (*abi.Manifest, []string, error) {
	in, err := g.instantiate(ctx)
	if err != nil {
		return nil, nil, g.startError(err)
	}
	defer in.close(ctx)
	man, unknown, err := in.describe(ctx)
	if err != nil {
		return nil, nil, g.startError(err)
	}
	return man, unknown, nil
}

// startError tells a guest that fails in its start code from the host's own
// troubles.
func (g *revision) startError(err error) error {
	if _, ok := errors.AsType[*abi.CallError](err); ok {
		return &InvalidError{Name: g.name, Problems: []string{shorten(err.Error(), maxText)}, Err: err} // the guest's stack has lines
	}
	return fmt.Errorf("module[%s]: start: %w", g.name, err)
}
