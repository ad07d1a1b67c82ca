package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/probation"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Values of --reconcile-on-swap.
const (
	reconcileAll     = "all"
	reconcileNone    = "none"
	reconcileChanged = "changed" // those in doubt: see lastGood
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
	// digest is that of the candidate, where it is known.
	digest string
	// urgent says that nothing else comes first.
	urgent bool
	// probation says that the new generation has to prove itself, canary that it is
	// tried on some objects before.
	probation bool
	canary    canaryHow
	// result is told once it is done; empty is not.
	result swapResult
	// why is for the log.
	why string
}

// swapHow says how a module is swapped in.
type swapHow struct {
	// force tries one again that was taken back.
	force bool
	// canary is nil for what the process was started with.
	canary *canaryHow
	// why is for the log.
	why string
}

// swap makes the module with these bytes live, or tries it on some objects
// first, and returns its generation. It is called by serve. The error wraps
// host.ErrSameModule where that is so already.
func (s *session) swap(ctx context.Context, wasm []byte, how swapHow) (uint64, error) {
	digest := host.DigestOf(wasm)
	if how.canary == nil {
		how.canary = &s.opts.tried
	}
	if s.sameCanary(digest, *how.canary) {
		return s.canary.candidate.Number(), host.ErrSameModule
	}
	if reason := s.trials.badReason(digest); reason != "" && !how.force {
		err := fmt.Errorf("module %s was taken back: %s; it is not tried again until it changes, or with wasmctl swap --force",
			shortDigest(digest), reason)
		s.tell(swapRefused, 0, err.Error())
		return 0, err
	}
	number, err := s.change(ctx, change{
		prepare: func(ctx context.Context, connect connectFunc) (*host.Candidate, error) {
			return s.module.Prepare(ctx, wasm, connect)
		},
		digest: digest, why: how.why, probation: s.probation.Time > 0, canary: *how.canary, result: swapDone,
	})
	switch {
	case errors.Is(err, host.ErrSameModule):
		s.endCanary(ctx, canaryReplaced, "the module that is live was asked for again")
	case err != nil && ctx.Err() == nil:
		s.trials.refused(digest, err)
		s.tell(swapRefused, 0, err.Error())
	}
	return number, err
}

// rollback makes an earlier generation's code live again; 0 is the one before.
func (s *session) rollback(ctx context.Context, to uint64, result swapResult, why string) (uint64, error) {
	return s.change(ctx, change{
		urgent: result == "",
		prepare: func(ctx context.Context, connect connectFunc) (*host.Candidate, error) {
			return s.module.PrepareKept(ctx, to, connect)
		},
		why: why, result: result,
	})
}

// change replaces the live generation. Until the new one is promoted nothing is
// touched that the old one uses: new watches sync first, and those that only the
// old one needs stay for as long as there may be a way back.
func (s *session) change(ctx context.Context, ch change) (uint64, error) {
	began, before, settings := time.Now(), s.module.Generation(), s.settingsNumber()
	up, err := s.raised(ctx, ch)
	if err != nil {
		return 0, err
	}
	attrs := []any{"why", ch.why, "digest", shortDigest(up.candidate.Digest()), "before", before, "watches_added", len(up.added)}
	number := up.candidate.Number()
	if ch.canary.Enabled() {
		n := s.beginCanary(ctx, up, ch.canary)
		s.log.Info("module tried on some of the objects", append(attrs, "took", time.Since(began), "canary", ch.canary.String(), "triggered", n,
			"controller", s.name, "generation", number)...)
		s.tell(swapCanary, number, ch.why)
		return number, nil
	}
	defer up.candidate.Discard()
	s.endCanary(ctx, canaryReplaced, "another module was swapped in")
	if err := s.promote(ctx, up); err != nil {
		return 0, err
	}
	same := s.adopt(up) && settings == s.settingsNumber()
	n := s.promoted(ctx, up.candidate, promotion{probation: ch.probation, same: same})
	s.log.Info("module swapped", append(attrs, "took", time.Since(began), "triggered", n, "probation", ch.probation,
		"controller", s.name, "generation", number)...)
	if ch.result != "" {
		s.tell(ch.result, number, ch.why)
	}
	return number, nil
}

// promotion says what follows from a generation being live.
type promotion struct {
	probation bool
	// same says that its runs see what those before saw: watches and settings.
	same bool
	// wanted are the objects that it has not run yet; nil is all.
	wanted func(*reflector.Object) bool
}

// promoted does what follows from a generation being live, and returns how many
// objects it asked to be reconciled.
func (s *session) promoted(ctx context.Context, c *host.Candidate, p promotion) int {
	var cfg *probation.Config
	if p.probation {
		cfg = &s.probation
	}
	s.trials.promoted(c, cfg)
	if _, proven, ok := s.trials.onTrial(); ok {
		s.module.Pin(proven)
	} else {
		s.watching.settle()
	}
	s.awaitLate(ctx)
	switch {
	case s.opts.reconcileOnSwap == reconcileChanged && p.same:
		return s.reconcileWhere(ctx, s.done.inDoubt)
	case p.wanted != nil && s.opts.reconcileOnSwap != reconcileChanged:
		return s.reconcileWhere(ctx, p.wanted)
	}
	return s.reconcileWhere(ctx, func(*reflector.Object) bool { return true })
}

// raised is raise, which lets nothing wait for it unless it is urgent.
func (s *session) raised(ctx context.Context, ch change) (up *raised, err error) {
	defer s.trials.prepare(ch.digest)()
	if ch.urgent {
		return s.raise(ctx, ch)
	}
	err = s.meanwhile(ctx, func(ctx context.Context) (err error) {
		up, err = s.raise(ctx, ch)
		return err
	})
	return up, err
}

// raise prepares a candidate and brings up the watches that only it needs.
// After an error nothing is left of it.
func (s *session) raise(ctx context.Context, ch change) (_ *raised, err error) {
	up := &raised{}
	up.candidate, err = ch.prepare(ctx, func(m *abi.Manifest) (_ host.API, err error) {
		if up.plan, err = s.accept(ctx, m); err != nil {
			return nil, err
		}
		up.api = s.api.WithPolicy(up.plan.policy).WithLimits(apiLimits(s.limitsFor(m)))
		return tap{up.api, s}, nil
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			up.candidate.Discard()
		}
	}()
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := checkPredicates(s.watchedKinds(up.plan), up.candidate); err != nil {
		return nil, err
	}
	if up.list, err = s.wants(up.plan, up.candidate); err != nil {
		return nil, err
	}
	if up.added, err = s.watching.prepare(ctx, up.list, candidateHooks{up.candidate, s.module}); err != nil {
		return nil, err
	}
	s.runs.use(up.candidate.Number(), up.api)
	return up, nil
}

// promote makes a candidate live.
func (s *session) promote(ctx context.Context, up *raised) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := up.candidate.Promote(ctx); err != nil {
		s.watching.remove(up.added)
		return err
	}
	return nil
}

// adopt makes the plan and the watches of a candidate that was promoted those of
// the controller, and reports whether they are the same as before.
func (s *session) adopt(up *raised) (same bool) {
	same = sameInputs(s.plan, up.plan)
	s.watching.adopt(up.list, up.added)
	s.plan = up.plan
	return same
}

// accept says what a manifest means, or why a running controller cannot take it.
func (s *session) accept(ctx context.Context, m *abi.Manifest) (*plan, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if diff := s.otherKind(m); diff != "" { // its kind may never be there
		return nil, cannotChange(diff)
	}
	kind, err := s.resolveKind(ctx, m)
	if err != nil {
		return nil, err
	}
	if diff := s.differences(kind, m); len(diff) > 0 {
		return nil, cannotChange(diff...)
	}
	next, err := s.planFor(ctx, m)
	if err != nil {
		return nil, err
	}
	if more := s.beyondGranted(next); len(more) > 0 && !s.opts.allowMoreRights {
		return nil, fmt.Errorf("the module wants more rights than were granted, and than the one that was started has; start wasmctl with --allow-more-rights to let it: %s",
			strings.Join(more, "; "))
	}
	added := s.addedBy(next)
	if err := s.checkAccess(ctx, added); err != nil {
		return nil, err
	}
	return next, s.checkSelectors(ctx, added)
}

func cannotChange(diff ...string) error {
	return fmt.Errorf("the module wants what a running controller cannot change; stop wasmctl and start it with the new module: %s",
		strings.Join(diff, "; "))
}

// otherKind says which kind a manifest is for if it is another one than the
// controller's, whether or not the API server has it.
func (s *session) otherKind(m *abi.Manifest) string {
	is := s.kind.GVK()
	if s.opts.forKind != "" || m.For == nil || m.For.Group == is.Group && m.For.Kind == is.Kind {
		return ""
	}
	return fmt.Sprintf("for: %v, was %v", gvk(m.For), is)
}

// addedBy returns the kinds of a plan that are not watched in the same way
// already.
func (s *session) addedBy(next *plan) (added []watched) {
	known := map[string]bool{}
	for _, k := range s.plan.related {
		known[k.id()] = true
	}
	for _, k := range next.related {
		if !known[k.id()] && !s.watching.goesOn(k) {
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

// takeBack replaces a generation that is worse than the one before by that.
func (s *session) takeBack(ctx context.Context, reason string) {
	bad, proven, _ := s.trials.onTrial()
	s.log.Warn("the new module is worse than the one before, which takes over again", "reason", reason,
		"controller", s.name, "generation", bad)
	window := s.trials.fail(reason)
	s.done.distrust(bad)
	const why = "generation failed its probation"
	_, err := s.rollback(ctx, proven, "", why)
	if errors.Is(err, host.ErrNotKept) { // there were swaps for longer than it is kept
		_, err = s.rollback(ctx, 0, "", why)
	}
	if ctx.Err() != nil { // the next start runs what the file has
		return
	}
	if err != nil {
		s.log.Error("the module before cannot take over; swap in another with wasmctl swap", "error", err.Error(), "controller", s.name, "generation", bad)
		s.trials.giveUp()
		s.tell(swapStuck, bad, reason)
		return
	}
	s.trials.resume(window)
	s.module.Drop(bad)
	s.module.Interrupt(bad)
	s.tell(swapTakenBack, bad, reason)
}
