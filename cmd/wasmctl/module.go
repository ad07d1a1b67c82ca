package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// look says what is in a module: load.Inspect, or outline for who loads it next.
type look func(ctx context.Context, wasm []byte) *load.Info

func outline(_ context.Context, wasm []byte) *load.Info { return load.Outline(wasm) }

// inspectModule says what is in a module, and refuses one that could not be loaded.
// Nothing of it is run.
func inspectModule(ctx context.Context, from *flags.Registry, path string, look look) (*load.Info, error) {
	wasm, err := from.Open(path).Read()
	if err != nil {
		return nil, err
	}
	info := look(ctx, wasm)
	if len(info.Problems) > 0 {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: cannot be loaded: %s", path, strings.Join(info.Problems, "; ")))
	}
	return info, nil
}

// describedModule is inspectModule with the manifest that the module has as the
// controller of o. Where the file has none, its describe export is asked.
func describedModule(ctx context.Context, from *flags.Registry, o *v1alpha1.ControllerSpec) (*load.Info, error) {
	var failed error
	info, err := inspectModule(ctx, from, o.Module.String(), func(ctx context.Context, wasm []byte) *load.Info {
		info := load.Inspect(ctx, wasm)
		if len(info.Manifests()) == 0 && info.HasExport(abi.ExportDescribe) && len(info.Problems) == 0 {
			cfg := host.Config{Name: controllerName(o, nil)}
			cfg.Code.CacheDir, cfg.Code.CacheKey = flags.CodeCache("")
			info.Manifest, failed = project.Describe(ctx, wasm, cfg)
		}
		info.Choose(cmp.Or(o.Module.Controller, o.Name))
		return info
	})
	if failed != nil {
		return nil, engine.ModuleError(failed)
	}
	if err == nil && info.Manifest == nil && len(info.Controllers) > 0 {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: has no controller %q: want one of %s", o.Module.String(), cmp.Or(o.Module.Controller, o.Name), strings.Join(namesIn(info.Controllers), ", ")))
	}
	return info, err
}

// controllersOf returns the controllers that a module runs as: o, or each one where it has
// several and o names none.
func controllersOf(ctx context.Context, from *flags.Registry, o *v1alpha1.ControllerSpec) ([]*v1alpha1.ControllerSpec, error) {
	info, err := inspectModule(ctx, from, o.Module.String(), outline)
	if err != nil || o.Name != "" || o.Module.Controller != "" {
		return []*v1alpha1.ControllerSpec{o}, err
	}
	return each(o, namesIn(info.Controllers)), nil
}

func namesIn(manifests []*abi.Manifest) (names []string) {
	for _, m := range manifests {
		names = append(names, m.Name)
	}
	return names
}

// controllerName is what a controller is called whose module has this manifest.
func controllerName(o *v1alpha1.ControllerSpec, m *abi.Manifest) string {
	return host.Config{Name: o.Name, Fallback: flags.ModuleName(o.Module.String())}.NameFor(m)
}

// errNoneStarts says that no controller of several could be started.
var errNoneStarts = errors.New("no controller could be started")

// checkFiles checks the files of controllers before anything is connected, and returns
// the controllers: of a module with several, that nothing names, each. Wrong joins what is
// wrong with some of several, which do not stop the others; the error is that of the only
// one, that none can start, or that two have one name. The code of functions is checked
// where it is loaded.
func checkFiles(ctx context.Context, from *flags.Registry, list []*v1alpha1.ControllerSpec) (all []*v1alpha1.ControllerSpec, wrong, err error) {
	names, failed := make([][]string, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	slots := make(chan struct{}, cpus()) // each holds a module in memory
	for i, o := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			names[i], failed[i] = checkFilesOf(ctx, from, o, outline)
		})
	}
	wg.Wait()
	var errs []error
	modules := map[string]string{} // by the name of the controller
	for i, o := range list {
		if failed[i] != nil {
			errs = append(errs, failed[i])
		}
		for _, name := range names[i] {
			if other, taken := modules[name]; taken {
				return nil, nil, failure.Usage.Wrap(fmt.Errorf("controller[%s]: module[%s] and module[%s] have this name, and a grant is for a name: name them in a file, with wasmctl run -f",
					name, other, o.Module.String()))
			}
			modules[name] = o.Module.String()
		}
		all = append(all, each(o, names[i])...)
	}
	switch wrong = errors.Join(errs...); {
	case len(errs) == 0 || len(errs) < len(list):
		return all, wrong, nil
	case len(list) == 1:
		return nil, nil, wrong
	}
	return nil, nil, fmt.Errorf("%w: %w", errNoneStarts, wrong)
}

// each returns the controllers that a module runs as, which has these names.
func each(o *v1alpha1.ControllerSpec, names []string) (all []*v1alpha1.ControllerSpec) {
	if len(names) < 2 {
		return []*v1alpha1.ControllerSpec{o}
	}
	for _, name := range names {
		c := *o
		c.Name = name
		all = append(all, &c)
	}
	return all
}

// checkFilesOf checks the files of a controller, as far as that takes neither a
// cluster nor running the module. The name is the controller's, several are those of a
// module that has several, and there is none where only running the module says it.
func checkFilesOf(ctx context.Context, from *flags.Registry, o *v1alpha1.ControllerSpec, look look) (names []string, err error) {
	info, err := inspectModule(ctx, from, o.Module.String(), look)
	errs := []error{err}
	if info != nil {
		info.Choose(cmp.Or(o.Module.Controller, o.Name))
	}
	known := info != nil && (info.Manifest != nil || len(info.Controllers) > 0 || o.Name != "")
	switch {
	case info != nil && info.Manifest == nil && o.Name == "" && o.Module.Controller == "" && len(info.Controllers) > 0:
		names = namesIn(info.Controllers)
	case known, info != nil && !info.HasExport(abi.ExportDescribe):
		names = []string{controllerName(o, info.Manifest)}
	}
	files, err := flags.ReadFiles(o)
	errs = append(errs, err)
	if err == nil && known {
		signers, err := wasmctl.Signers(from.Open(o.Module.String()), info.Digest)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, files.Grant.Check(name, info.Digest, signers))
		}
	}
	return names, errors.Join(errs...)
}
