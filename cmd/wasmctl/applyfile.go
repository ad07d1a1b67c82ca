// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// followFile applies the file of controllers whenever it changes, and at each SIGHUP, until ctx
// ends. A file that cannot be read changes nothing.
func (p *process) followFile(ctx context.Context) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	changed := make(chan []byte)
	file := filewatch.File{
		Path: p.file.Path, Content: p.file.Content, MaxSize: flags.MaxFile,
		OnChange: func(ctx context.Context, content []byte) {
			select {
			case changed <- content:
			case <-ctx.Done():
			}
		},
		OnError: func(err error) {
			p.log.Warn("cannot read the controllers file; controllers unchanged", "file", p.file.Path, "error", err.Error())
		},
		OnPolling: func(err error) { p.log.Info("polling the file for changes", "because", err.Error()) },
	}
	p.wg.Go(func() { _ = file.Run(ctx) }) // OnPolling has logged the error
	for {
		select {
		case <-ctx.Done():
			return
		case content := <-changed:
			p.applyFile(ctx, content)
		case <-again:
			if content, err := os.ReadFile(p.file.Path); err == nil {
				p.applyFile(ctx, content)
			}
		}
	}
}

// applyFile brings the running controllers in line with the file. Unchanged controllers are not
// touched. A changed controller that runs gets its settings and its module while it runs, and is
// restarted for other changes; one that does not run is replaced.
func (p *process) applyFile(ctx context.Context, content []byte) {
	next, err := flags.ParseFile(p.file.Path, content)
	if err == nil {
		err = p.process.Fits(len(next.Specs))
	}
	if err != nil {
		p.log.Warn("invalid controllers file; controllers unchanged", "file", p.file.Path, "error", strings.TrimSpace(err.Error()))
		return
	}
	if !maps.EqualFunc(next.Process, p.file.Process, slices.Equal[[]string]) {
		p.log.Warn("process options changed in the controllers file; they take effect at the next start", "file", p.file.Path)
		next.Process = p.file.Process
	}
	var added, changed, removed int
	for i := range p.file.Controllers {
		if before := &p.file.Controllers[i]; next.Find(before.Spec.Name) < 0 {
			p.remove(ctx, before.Spec.Name)
			removed++
		}
	}
	for i := range next.Controllers {
		c, j := &next.Controllers[i], p.file.Find(next.Controllers[i].Spec.Name)
		switch {
		case j < 0:
			added++
		case c.Equal(&p.file.Controllers[j]):
			next.Specs[i] = p.file.Specs[j]
			continue
		default:
			changed++
			if p.change(ctx, c, &p.file.Controllers[j], next.Specs[i]) {
				continue
			}
			p.remove(ctx, c.Spec.Name)
		}
		if _, err := p.add(ctx, next.Specs[i]); err != nil {
			return // the process stops
		}
	}
	p.file = next
	p.log.Info("controllers updated from the file", "file", p.file.Path, "added", added, "changed", changed, "removed", removed)
}

// remove stops a controller cleanly, and waits until it has ended.
func (p *process) remove(ctx context.Context, name string) {
	p.mu.Lock()
	f := p.followers[name]
	delete(p.followers, name)
	p.mu.Unlock()
	if f == nil {
		return
	}
	if err := f.Controller.Stop(ctx); err != nil && ctx.Err() == nil {
		p.log.Warn("controller did not stop cleanly", "controller", name, "error", err.Error())
	}
}

// change brings a running controller to its new spec. It reports false if the controller does not
// run.
func (p *process) change(ctx context.Context, next, before *runfile.Controller, o *v1alpha1.ControllerSpec) (ok bool) {
	rest := func(c *runfile.Controller) v1alpha1.ControllerSpec {
		s := c.Spec
		s.Config, s.Module.File, s.Module.Image = nil, "", ""
		return s
	}
	p.mu.Lock()
	f := p.followers[next.Spec.Name]
	p.mu.Unlock()
	if f == nil || !f.Controller.Running() {
		return false
	}
	f.Change(ctx, o, !reflect.DeepEqual(rest(next), rest(before)))
	return true
}
