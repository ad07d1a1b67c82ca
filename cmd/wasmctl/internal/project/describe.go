// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
)

// severalControllers matches the error of an operator with several controllers, if none of them has
// the requested name.
var severalControllers = regexp.MustCompile(`run it once for each, with --name and one of ([^ ,]+(?:, [^ ,]+)*)`)

// Annotate returns the module with its description in the manifest sections, and the description. A
// module without a describe export must already have the sections, and stays unchanged. cfg has the
// name, and the cache of compiled code. Describe runs in a sandbox that can only log. The error
// matches load.ErrInvalidModule if it is the module's fault.
func Annotate(ctx context.Context, wasm []byte, cfg host.Config) ([]byte, Described, error) {
	info := load.Inspect(ctx, wasm)
	if all := info.Manifests(); len(all) > 0 && !info.HasExport(abi.ExportDescribe) && len(info.Problems) == 0 {
		return wasm, Described{Manifests: all}, nil
	}
	d, err := describeAll(ctx, wasm, cfg)
	if err != nil {
		return nil, d, err
	}
	annotated, err := load.WithManifest(wasm, d.Manifests...)
	return annotated, d, err
}

// Described is a module's description of itself.
type Described struct {
	// Manifests has one manifest for each controller.
	Manifests []*abi.Manifest `json:"manifests"`
	// LeftOut are the errors of the controllers that cannot run in a module, if others can.
	LeftOut []error `json:"-"`
}

// describeAll calls Describe for each controller of a module.
func describeAll(ctx context.Context, wasm []byte, cfg host.Config) (Described, error) {
	first, err := Describe(ctx, wasm, cfg)
	alone := first
	if err == nil && first.Name == cfg.Name { // there may be more than one
		other := cfg
		other.Name += "-"
		first, err = Describe(ctx, wasm, other)
	}
	if err == nil {
		return Described{Manifests: []*abi.Manifest{alone}}, nil
	}
	names := severalControllers.FindStringSubmatch(err.Error())
	if names == nil {
		return Described{}, err
	}
	if first.Limits != nil { // it needs more stack
		cfg.Limits.Stack = share.MaxStack
	}
	manifests, errs, err := host.DescribeEach(ctx, wasm, cfg, strings.Split(names[1], ", ")...)
	var d Described
	for i, m := range manifests {
		if errs[i] != nil {
			d.LeftOut = append(d.LeftOut, errs[i])
			continue
		}
		if first.Limits != nil {
			askStack(m)
		}
		d.Manifests = append(d.Manifests, m)
	}
	if len(d.Manifests) == 0 {
		err = errors.Join(append(d.LeftOut, err)...)
	}
	return d, err
}

// Describe returns the manifest that the describe export returns for a controller with cfg's name,
// in the sandbox of Annotate. If a large program needs more than the usual stack for its variables,
// the manifest requests the maximum.
func Describe(ctx context.Context, wasm []byte, cfg host.Config) (*abi.Manifest, error) {
	manifest, err := host.Describe(ctx, wasm, cfg)
	more := errors.Is(err, share.ErrStack)
	if more {
		cfg.Limits.Stack = share.MaxStack
		manifest, err = host.Describe(ctx, wasm, cfg)
	}
	if manifest == nil {
		manifest = &abi.Manifest{}
	}
	if more {
		askStack(manifest)
	}
	return manifest, err
}

func askStack(m *abi.Manifest) {
	m.Limits = cmp.Or(m.Limits, &abi.Limits{})
	m.Limits.Stack = share.MaxStack
}
