package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/host"
)

func equalValues(a, b runfile.Values) bool { return maps.EqualFunc(a, b, slices.Equal[[]string]) }

// removeMember stops a controller, in order, and waits until it has ended.
func (p *process) removeMember(ctx context.Context, name string) {
	for _, m := range p.members.all() {
		if m.name() == name {
			m.remove(errRemoved)
			select {
			case <-m.ended:
			case <-ctx.Done():
			}
		}
	}
}

// reconfigured gives a running controller what has changed, if it can take that
// while it runs: its module, by a swap, and its settings. What it refuses leaves
// it as it is; options are those that it has from now on.
func (p *process) reconfigured(ctx context.Context, next, before *runfile.Controller, options *controllerOptions) (ok bool) {
	rest := func(c *runfile.Controller) runfile.Values {
		v := maps.Clone(c.Values)
		delete(v, "config")
		return v
	}
	if !equalValues(rest(next), rest(before)) {
		return false
	}
	s, err := p.session(next.Name)
	if err != nil {
		return false // it does not run yet
	}
	return s.do(ctx, func(ctx context.Context) error {
		s.opts.config = options.config // serve's own by now
		s.configureFile(ctx, s.settingsFile)
		s.moveModule(ctx, next.Module)
		return nil
	}) == nil
}

// moveModule swaps in the module of another file, which is watched from now on.
func (s *session) moveModule(ctx context.Context, path string) {
	if s.file.path() == path {
		return
	}
	wasm, err := readModule(path)
	if err == nil {
		_, err = s.swap(ctx, wasm, swapHow{why: "the file of controllers names another"})
	}
	if err != nil && !errors.Is(err, host.ErrSameModule) {
		s.log.Warn("the module was not swapped in; the one that runs stays", "module", path, "error", err.Error(), "controller", s.name)
	}
	s.file.move(path)
}
