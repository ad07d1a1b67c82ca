// SPDX-License-Identifier: Apache-2.0

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

// look reads the contents of a module: load.Inspect, or outline if the caller loads the module next.
type look func(ctx context.Context, wasm []byte) *load.Info

func outline(_ context.Context, wasm []byte) *load.Info { return load.Outline(wasm) }

// inspectModule returns the contents of a module, or an error if the module cannot be loaded. It does
// not run the module.
func inspectModule(ctx context.Context, from *flags.Registry, path string, look look) (*load.Info, error) {
	wasm, err := from.Read(ctx, from.Open(path))
	if err != nil {
		return nil, err
	}
	info := look(ctx, wasm)
	if len(info.Problems) > 0 {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: cannot be loaded: %s", path, strings.Join(info.Problems, "; ")))
	}
	return info, nil
}

// describedModule is like inspectModule, but chooses the manifest of the controller of o. If the file
// has no manifest, it calls the describe export.
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

// controllersOf returns the controllers that a module runs as: o, or if o names no controller, each
// controller of the module.
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

// controllerName returns the name of the controller of a module with this manifest.
func controllerName(o *v1alpha1.ControllerSpec, m *abi.Manifest) string {
	return host.Config{Name: o.Name, Fallback: flags.ModuleName(o.Module.String())}.NameFor(m)
}

// errNoneStarts is the error of a process that could not start any of several controllers.
var errNoneStarts = errors.New("no controller could be started")

// checkFiles checks the files of controllers before the process connects to the cluster, and returns
// the controllers. If a module has several controllers and none is named, it returns each of them.
// If some of several controllers are wrong, the others can run: wrong joins these errors. err is the
// error of the only controller, or reports that no controller can start or that two have the same
// name. The code of functions is checked later, when it is loaded.
func checkFiles(ctx context.Context, from *flags.Registry, list []*v1alpha1.ControllerSpec) (all []*v1alpha1.ControllerSpec, wrong, err error) {
	names, failed := make([][]string, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	slots := make(chan struct{}, cpus()) // bounds the modules in memory
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

// each returns a copy of o for each name, or o itself if there are fewer than two.
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

// checkFilesOf checks the files of a controller, without a cluster and without running the module. It
// returns the name of the controller, or all names if the module has several controllers. If the
// name is unknown until the module runs, it returns none.
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
