package project

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
)

// severalControllers is in the error of an operator with several controllers, none of
// which has the name that it was asked under.
var severalControllers = regexp.MustCompile(`run it once for each, with --name and one of ([^ ,]+(?:, [^ ,]+)*)`)

// Annotate returns the module with what its describe export says in its manifest
// sections, and that. A module without describe must have them already, and stays as it
// is. cfg has the name, and the cache of compiled code. Describe runs in a sandbox that
// can do nothing but log. The error matches host.ErrInvalidModule where the module is at
// fault.
func Annotate(ctx context.Context, wasm []byte, cfg host.Config) ([]byte, Described, error) {
	info := host.Inspect(ctx, wasm)
	if all := info.Manifests(); len(all) > 0 && !info.HasExport(abi.ExportDescribe) && len(info.Problems) == 0 {
		return wasm, Described{Manifests: all}, nil
	}
	d, err := describeAll(ctx, wasm, cfg)
	if err != nil {
		return nil, d, err
	}
	annotated, err := host.WithManifest(wasm, d.Manifests...)
	return annotated, d, err
}

// Described is what a module says of itself.
type Described struct {
	// Manifests are one, or one for each controller.
	Manifests []*abi.Manifest `json:"manifests"`
	// LeftOut are the errors of the controllers that cannot be those of a module, where
	// others can.
	LeftOut []error `json:"-"`
}

// describeAll is Describe for each controller that a module has.
func describeAll(ctx context.Context, wasm []byte, cfg host.Config) (Described, error) {
	first, err := Describe(ctx, wasm, cfg)
	alone := first
	if err == nil && first.Name == cfg.Name { // may be one of several
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
		cfg.Limits.Stack = host.MaxStack
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

// Describe returns what the describe export says to a controller of cfg's name, in the
// sandbox of Annotate. Where a large program needs more than the usual stack for its
// variables, the manifest asks for the maximum.
func Describe(ctx context.Context, wasm []byte, cfg host.Config) (*abi.Manifest, error) {
	manifest, err := host.Describe(ctx, wasm, cfg)
	more := errors.Is(err, host.ErrStack)
	if more {
		cfg.Limits.Stack = host.MaxStack
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
	m.Limits.Stack = host.MaxStack
}
