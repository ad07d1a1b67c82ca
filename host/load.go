package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
)

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
	g, err := compile(ctx, wasm, bin, cfg)
	if err != nil {
		return nil, err
	}
	info := newInfo(wasm, bin)
	g.digest = info.Digest
	if err := g.start(ctx, info); err != nil {
		g.retire()
		return nil, err
	}
	m := &Module{name: g.name, info: info, shared: g.shared, last: g}
	m.current.Store(g)
	return m, nil
}

// Describe runs the describe export of a module in a sandbox without host
// functions other than log, clocks and random, and returns the manifest. It
// does not look at the manifest section: it is what a tool calls to write one.
func Describe(ctx context.Context, wasm []byte, cfg Config) (*abi.Manifest, error) {
	cfg, bin, err := prepare(wasm, cfg)
	if err != nil {
		return nil, err
	}
	if !bin.exportsFunc(abi.ExportDescribe) {
		return nil, invalid(cfg.NameFor(nil), fmt.Errorf("export[%s]: missing: the module does not say what it is", abi.ExportDescribe))
	}
	g, err := compile(ctx, wasm, bin, cfg)
	if err != nil {
		return nil, err
	}
	defer g.retire()
	m, _, err := g.describe(ctx)
	return m, err
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
	man, _, err := bin.manifest()
	problems := bin.problems(cfg.limits(man).Memory)
	if err != nil {
		problems = append(problems, err.Error())
	}
	problems = append(problems, bin.manifestProblems(man, capNames(cfg.API != nil))...)
	if len(problems) > 0 {
		return cfg, nil, &InvalidError{Name: cfg.NameFor(man), Problems: problems}
	}
	return cfg, bin, nil
}

// start finds the manifest, connects the API and makes the first instance.
func (g *generation) start(ctx context.Context, info *Info) error {
	man, unknown := info.Manifest, info.UnknownKeys
	if man == nil && g.hooks[abi.ExportDescribe] {
		var err error
		if man, unknown, err = g.describe(ctx); err != nil {
			return err
		}
		problems := append(checkRequires(man, g.caps), checkHooks(man, func(name string) bool { return g.hooks[name] })...)
		problems = append(problems, checkStartSize(info.Memory, g.cfg.limits(man).Memory)...)
		if len(problems) > 0 {
			return &InvalidError{Name: g.cfg.NameFor(man), Problems: problems}
		}
		info.Manifest, info.UnknownKeys = man, unknown
	}
	if man == nil {
		man = &abi.Manifest{}
	}
	g.configure(man)
	if len(unknown) > 0 {
		g.log.Warn("manifest has keys that this host does not know; they are ignored", "keys", unknown)
	}
	if err := g.settings.Load().checkSize(); err != nil {
		return fmt.Errorf("module[%s]: %w", g.name, err)
	}
	in, err := g.get(ctx, g.slots)
	if err != nil {
		return g.startError(err)
	}
	g.put(in, g.slots)
	if g.cfg.API == nil {
		return nil
	}
	// Last, because it may wait for a cluster: a module that does not start is
	// refused without one.
	g.api, err = g.cfg.API(man)
	return err
}

// describe calls the guest's describe on an instance of its own, made before
// the manifest's limits are known.
func (g *generation) describe(ctx context.Context) (*abi.Manifest, []string, error) {
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
func (g *generation) startError(err error) error {
	if _, ok := errors.AsType[*abi.CallError](err); ok {
		return invalid(g.name, err)
	}
	return fmt.Errorf("module[%s]: start: %w", g.name, err)
}
