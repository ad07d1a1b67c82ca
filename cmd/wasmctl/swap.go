package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
	"github.com/wasmctl/wasmctl/runtime/probation"
)

// Values of --reconcile-on-swap.
const (
	reconcileAll  = "all"
	reconcileNone = "none"
)

// prepareLimit bounds each of the two things that a swap waits for before the
// module is live: kinds that the API server does not have yet, and watches that
// sync.
const prepareLimit = time.Minute

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, prepareLimit, fmt.Errorf("not ready within %v", prepareLimit))
}

// connectFunc is what host.Module.Prepare calls with the manifest.
type connectFunc = func(*abi.Manifest) (host.API, error)

// change is a change of the generation that is live.
type change struct {
	// prepare makes the candidate.
	prepare func(ctx context.Context, connect connectFunc) (*host.Candidate, error)
	// probation says that the new generation has to prove itself.
	probation bool
	// why is for the log.
	why string
}

// swap makes the module with these bytes live, and returns its generation. It is
// called by serve. The error wraps host.ErrSameModule where it is live already.
func (s *session) swap(ctx context.Context, wasm []byte, force bool, why string) (uint64, error) {
	digest := host.DigestOf(wasm)
	if reason := s.trials.badReason(digest); reason != "" && !force {
		return 0, fmt.Errorf("module %s was taken back: %s; it is not tried again until it changes, or with wasmctl swap --force",
			shortDigest(digest), reason)
	}
	number, err := s.change(ctx, change{
		prepare: func(ctx context.Context, connect connectFunc) (*host.Candidate, error) {
			return s.module.Prepare(ctx, wasm, connect)
		},
		why: why, probation: s.probation.Time > 0,
	})
	if err != nil && !errors.Is(err, host.ErrSameModule) && ctx.Err() == nil {
		s.trials.refused(digest, err)
	}
	return number, err
}

// rollback makes an earlier generation's code live again; 0 is the one before.
func (s *session) rollback(ctx context.Context, to uint64, why string) (uint64, error) {
	return s.change(ctx, change{
		prepare: func(ctx context.Context, connect connectFunc) (*host.Candidate, error) {
			return s.module.PrepareKept(ctx, to, connect)
		},
		why: why,
	})
}

// change replaces the live generation. Until the new one is promoted nothing is
// touched that the old one uses: new watches sync first, and those that only the
// old one needs stay for as long as there may be a way back.
func (s *session) change(ctx context.Context, ch change) (uint64, error) {
	began, before := time.Now(), s.module.Generation()
	var next *plan
	c, err := ch.prepare(ctx, func(m *abi.Manifest) (_ host.API, err error) {
		if next, err = s.accept(ctx, m); err != nil {
			return nil, err
		}
		return s.api.WithPolicy(next.policy), nil
	})
	if err != nil {
		return 0, err
	}
	defer c.Discard()
	added, err := s.promote(ctx, c, next)
	if err != nil {
		return 0, err
	}
	n := s.promoted(ctx, c, ch.probation)
	s.log.Info("module swapped", "why", ch.why, "digest", shortDigest(c.Digest()), "before", before, "took", time.Since(began),
		"watches_added", added, "triggered", n, "probation", ch.probation, "controller", s.name, "generation", c.Number())
	return c.Number(), nil
}

// promoted does what follows from a generation being live, and returns how many
// objects it asked to be reconciled.
func (s *session) promoted(ctx context.Context, c *host.Candidate, onProbation bool) int {
	var cfg *probation.Config
	if onProbation {
		cfg = &s.probation
	}
	s.trials.promoted(c, cfg)
	if _, proven, ok := s.trials.onTrial(); ok {
		s.module.Pin(proven)
	} else {
		s.watching.settle()
	}
	s.awaitLate(ctx)
	if s.opts.reconcileOnSwap == reconcileNone {
		return 0
	}
	return s.controller.TriggerAll(ctx, abi.ReasonModuleSwapped)
}

// promote brings up the watches that only the candidate needs, and makes it
// live. It returns how many those are.
func (s *session) promote(ctx context.Context, c *host.Candidate, next *plan) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := checkPredicates(s.watchedKinds(next), c); err != nil {
		return 0, err
	}
	list, err := s.wants(next, c)
	if err != nil {
		return 0, err
	}
	added, err := s.watching.prepare(ctx, list, candidateHooks{c, s.module})
	if err != nil {
		return 0, err
	}
	s.runs.use(c.Number(), s.api.WithPolicy(next.policy))
	if err := c.Promote(ctx); err != nil {
		s.watching.remove(added)
		return 0, err
	}
	n := len(added)
	s.watching.adopt(list, added)
	s.plan = next
	return n, nil
}

// accept says what a manifest means, or why a running controller cannot take it.
func (s *session) accept(ctx context.Context, m *abi.Manifest) (*plan, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	kind, err := s.resolveKind(ctx, m)
	if err != nil {
		return nil, err
	}
	if diff := s.differences(kind, m); len(diff) > 0 {
		return nil, fmt.Errorf("the module wants what a running controller cannot change; stop wasmctl and start it with the new module: %s",
			strings.Join(diff, "; "))
	}
	next, err := s.planFor(ctx, m)
	if err != nil {
		return nil, err
	}
	if more := beyond(s.granted, m.Capabilities); len(more) > 0 && !s.opts.allowMoreRights {
		return nil, fmt.Errorf("the module wants more rights than the one that was started has; start wasmctl with --allow-more-rights to let it: %s",
			strings.Join(more, "; "))
	}
	added := s.addedBy(next)
	if err := s.checkAccess(ctx, added); err != nil {
		return nil, err
	}
	return next, s.checkSelectors(ctx, added)
}

// addedBy returns the kinds of a plan that the live generation does not watch in
// the same way.
func (s *session) addedBy(next *plan) (added []watched) {
	known := map[string]bool{}
	for _, k := range s.plan.related {
		known[k.id()] = true
	}
	for _, k := range next.related {
		if !known[k.id()] {
			added = append(added, k)
		}
	}
	return added
}

// differences lists what a controller has from its first module for good.
func (s *session) differences(kind watched, m *abi.Manifest) (diff []string) {
	first := s.plan.manifest
	add := func(what string, old, new any) {
		diff = append(diff, fmt.Sprintf("%s: %v, was %v", what, new, old))
	}
	if old, new := s.kind.id(), kind.id(); old != new {
		if s.kind.GVK() != kind.GVK() {
			add("for", s.kind.GVK(), kind.GVK())
		} else {
			add("for", old, new)
		}
	}
	if first.Finalizer != m.Finalizer {
		add("finalizer", strconv.Quote(first.Finalizer), strconv.Quote(m.Finalizer))
	}
	return diff
}

// beyond lists the capabilities, as a manifest would have them, that granted
// does not cover.
func beyond(granted *kubeapi.Policy, capabilities []abi.Capability) (more []string) {
	for _, c := range capabilities {
		missing := c
		missing.Verbs = slices.DeleteFunc(slices.Clone(c.Verbs), func(verb string) bool { return covers(granted, c, verb) })
		if len(missing.Verbs) == 0 {
			continue
		}
		b, err := json.Marshal(missing)
		if err != nil {
			panic("BUG: capability: " + err.Error()) // strings
		}
		more = append(more, string(b))
	}
	return more
}

// covers reports whether granted allows a verb of a capability in each of its
// namespaces, for each of its names and subresources.
func covers(granted *kubeapi.Policy, c abi.Capability, verb string) bool {
	or := func(list []string) []string {
		if len(list) == 0 {
			return []string{""} // any, which only a rule without a list covers
		}
		return list
	}
	for _, sub := range or(c.Subresources) {
		for _, ns := range or(c.Namespaces) {
			for _, name := range or(c.Names) {
				a := kubeapi.Attributes{Group: c.Group, Resource: c.Resource, Subresource: sub, Verb: verb, Namespace: ns, Name: name}
				if !granted.Allows(a) {
					return false
				}
			}
		}
	}
	return true
}

// takeBack replaces a generation that is worse than the one before by that.
func (s *session) takeBack(ctx context.Context, reason string) {
	bad, proven, _ := s.trials.onTrial()
	s.log.Warn("the new module is worse than the one before, which takes over again", "reason", reason,
		"controller", s.name, "generation", bad)
	window := s.trials.fail(reason)
	const why = "generation failed its probation"
	_, err := s.rollback(ctx, proven, why)
	if errors.Is(err, host.ErrNotKept) { // there were swaps for longer than it is kept
		_, err = s.rollback(ctx, 0, why)
	}
	if err != nil {
		s.log.Error("the module before cannot take over; swap in another with wasmctl swap", "error", err.Error(), "controller", s.name, "generation", bad)
		s.trials.giveUp()
		return
	}
	s.trials.resume(window)
	s.module.Drop(bad)
	s.module.Interrupt(bad)
}

// watchModule swaps the module whenever its file changes, until ctx ends.
func (s *session) watchModule(ctx context.Context) {
	file := filewatch.File{
		Path: s.opts.module, Sum: s.moduleSum, MaxSize: host.DefaultMaxModuleSize,
		OnChange: func(ctx context.Context, wasm []byte) {
			_ = s.do(ctx, func(ctx context.Context) error { s.swapFile(ctx, wasm); return nil })
		},
		OnError: func(err error) {
			s.log.Warn("the module's file cannot be read; the module that runs stays", "error", err.Error(), "controller", s.name)
		},
	}
	_ = file.Run(ctx) // its error has been told to OnError
}

// reload swaps in what the module's file has.
func (s *session) reload(ctx context.Context) {
	wasm, err := readModule(s.opts.module)
	if err != nil {
		s.log.Warn("the module's file cannot be read; the module that runs stays", "error", err.Error(), "controller", s.name)
		return
	}
	s.swapFile(ctx, wasm)
}

// swapFile swaps in bytes of the module's file.
func (s *session) swapFile(ctx context.Context, wasm []byte) {
	switch _, err := s.swap(ctx, wasm, false, "its file changed"); {
	case errors.Is(err, host.ErrSameModule):
		s.log.Info("the module's file has what runs already", "controller", s.name)
	case err != nil:
		s.log.Warn("the module's file was not swapped in; the module that runs stays", "digest", shortDigest(host.DigestOf(wasm)),
			"error", err.Error(), "controller", s.name)
	}
}
