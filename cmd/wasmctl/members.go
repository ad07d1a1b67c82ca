package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// members are the controllers of a process, in the order in which they came.
type members struct {
	mu   sync.Mutex
	list []*member      // guarded by mu
	wg   sync.WaitGroup // of their goroutines

	// How the first tries of those that were there from the start went.
	expected int     // guarded by mu
	failures []error // guarded by mu
}

// errNoneStarts says that no controller of several could be started.
var errNoneStarts = errors.New("no controller starts")

// all returns the members there are.
func (ms *members) all() []*member {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return slices.Clone(ms.list)
}

// want adds a member. admit begins its life.
func (p *process) want(o *controllerOptions) *member {
	m := &member{process: p, opts: o, log: p.controllerLog(), ended: make(chan struct{})}
	m.note(phaseLoading, "", nil)
	p.members.mu.Lock()
	defer p.members.mu.Unlock()
	p.members.list = append(p.members.list, m)
	return m
}

// admit runs a member until ctx ends. settled is told how its first try went.
func (p *process) admit(ctx context.Context, m *member, settled func(error)) {
	ctx, m.remove = context.WithCancelCause(ctx)
	p.members.wg.Go(func() { m.run(ctx, settled) })
}

func (ms *members) drop(m *member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.list = slices.DeleteFunc(ms.list, func(o *member) bool { return o == m })
}

// expect returns what is to be told of the first try of each member. Once all
// have failed, fail is called with what they failed by: then there is nothing
// that could go on.
func (ms *members) expect(fail func(error)) (settled func(error)) {
	ms.expected = len(ms.all())
	return func(err error) {
		ms.mu.Lock()
		defer ms.mu.Unlock()
		if err == nil {
			ms.expected = -1 // it lives
		}
		if ms.failures = append(ms.failures, err); len(ms.failures) == ms.expected {
			fail(fmt.Errorf("%w: %w", errNoneStarts, errors.Join(ms.failures...)))
		}
	}
}

// sessions returns the sessions of the members that run.
func (ms *members) sessions() []*session {
	var out []*session
	for _, m := range ms.all() {
		if s := m.live(); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// loaded returns the sessions that were loaded before the process runs.
func (p *process) loaded() []*session {
	var out []*session
	for _, m := range p.members.all() {
		if m.loaded != nil {
			out = append(out, m.loaded)
		}
	}
	return out
}

// session returns the session of a controller that runs.
func (p *process) session(name string) (*session, error) {
	for _, m := range p.members.all() {
		if m.name() != name {
			continue
		}
		if s := m.live(); s != nil {
			return s, nil
		}
		phase, message, _ := m.state()
		return nil, admin.Refuse(fmt.Errorf("controller[%s]: is %s: %s", name, phase, message))
	}
	return nil, fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
}

// controllers returns the options of each controller that is asked for.
func (o *runOptions) controllers() []*controllerOptions {
	if o.file != nil {
		return o.file.options
	}
	list := make([]*controllerOptions, len(o.modules))
	for i, module := range o.modules {
		c := o.controllerOptions
		c.module = module
		list[i] = &c
	}
	return list
}
