package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// look says what is in a module: host.Inspect, or outline for who loads it next.
type look func(ctx context.Context, wasm []byte) *host.Info

func outline(_ context.Context, wasm []byte) *host.Info { return host.Outline(wasm) }

// inspectModule says what is in a module, and refuses one that could not be loaded.
// Nothing of it is run.
func inspectModule(ctx context.Context, from *flags.Registry, path string, look look) (*host.Info, error) {
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
// controller of o. Where the file has none, as with an operator of several controllers, its
// describe export is asked.
func describedModule(ctx context.Context, from *flags.Registry, o *flags.Controller) (*host.Info, error) {
	var failed error
	info, err := inspectModule(ctx, from, o.Module, func(ctx context.Context, wasm []byte) *host.Info {
		info := host.Inspect(ctx, wasm)
		if info.Manifest == nil && info.HasExport(abi.ExportDescribe) && len(info.Problems) == 0 {
			cfg := host.Config{Name: controllerName(o, nil)}
			cfg.CacheDir, cfg.CacheKey = flags.CodeCache("")
			info.Manifest, failed = project.Describe(ctx, wasm, cfg)
		}
		return info
	})
	if failed != nil {
		return nil, engine.ModuleError(failed)
	}
	return info, err
}

// controllerName is what a controller is called whose module has this manifest.
func controllerName(o *flags.Controller, m *abi.Manifest) string {
	return host.Config{Name: o.Name, Fallback: flags.ModuleName(o.Module)}.NameFor(m)
}

// errNoneStarts says that no controller of several could be started.
var errNoneStarts = errors.New("no controller could be started")

// checkFiles checks the files of controllers before anything is connected. Wrong
// joins what is wrong with some of several, which do not stop the others; the
// error is that of the only one, that none can start, or that two have one name. The
// code of functions is checked where it is loaded.
func checkFiles(ctx context.Context, from *flags.Registry, list []*flags.Controller) (wrong, err error) {
	names, failed := make([]string, len(list)), make([]error, len(list))
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
		name := names[i]
		if failed[i] != nil {
			errs = append(errs, failed[i])
		}
		if other, taken := modules[name]; taken && name != "" {
			return nil, failure.Usage.Wrap(fmt.Errorf("controller[%s]: module[%s] and module[%s] have this name, and a grant is for a name: name them in a file, with wasmctl run -f",
				name, other, o.Module))
		}
		modules[name] = o.Module
	}
	switch wrong = errors.Join(errs...); {
	case len(errs) == 0 || len(errs) < len(list):
		return wrong, nil
	case len(list) == 1:
		return nil, wrong
	}
	return nil, fmt.Errorf("%w: %w", errNoneStarts, wrong)
}

// checkFilesOf checks the files of a controller, as far as that takes neither a
// cluster nor running the module. The name is the controller's, "" where only
// running the module says it.
func checkFilesOf(ctx context.Context, from *flags.Registry, o *flags.Controller, look look) (name string, err error) {
	info, err := inspectModule(ctx, from, o.Module, look)
	errs := []error{err}
	if info != nil && (info.Manifest != nil || o.Name != "" || !info.HasExport(abi.ExportDescribe)) {
		name = controllerName(o, info.Manifest)
	}
	files, err := o.ReadFiles()
	errs = append(errs, err)
	if err == nil && info != nil && (info.Manifest != nil || o.Name != "") {
		signers, err := wasmctl.Signers(from.Open(o.Module), info.Digest)
		errs = append(errs, err, files.Grant.Check(name, info.Digest, signers))
	}
	return name, errors.Join(errs...)
}
