package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/canary"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/probation"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// defaultCanaryTime is for how long a canary must do no worse until it is
// promoted.
const defaultCanaryTime = 5 * time.Minute

// canaryOff is the value of --canary that asks for none.
const canaryOff = "off"

// untilPromoted is the time of a canary that nobody promotes but a user.
const untilPromoted = 100 * 365 * 24 * time.Hour

// errNoCanary is the error of promote and abort where there is none.
var errNoCanary = errors.New("no module is tried on some of the objects now: begin with wasmctl swap --canary 10%")

// canaryOptions are the flags of a canary.
type canaryOptions struct {
	share      string
	namespaces []string
	selector   string
	time       time.Duration
}

func (o *canaryOptions) bind(f *pflag.FlagSet, time time.Duration) {
	f.StringVar(&o.share, "canary", "", "try a module that is swapped in on this share of the objects first, for example 10% (default: on all at once)")
	f.StringSliceVar(&o.namespaces, "canary-namespace", nil, "try it on the objects of these namespaces first; may be repeated")
	f.StringVar(&o.selector, "canary-selector", "", "try it on the objects with these labels first")
	f.DurationVar(&o.time, "canary-time", time, "for how long it must do no worse than the other until it gets all objects; 0 waits for wasmctl promote")
}

// given reports whether any of the flags was.
func (o *canaryOptions) given(f *pflag.FlagSet) bool {
	return o.share != "" || len(o.namespaces) > 0 || o.selector != "" || f.Changed("canary-time")
}

// parse returns what the flags mean.
func (o *canaryOptions) parse() (canaryHow, error) {
	share := o.share
	if share == canaryOff {
		if len(o.namespaces) > 0 || o.selector != "" {
			return canaryHow{}, errors.New("--canary off: leave --canary-namespace and --canary-selector out")
		}
		share = ""
	}
	cfg, err := canary.Parse(share, o.namespaces, o.selector)
	switch {
	case err != nil:
		return canaryHow{}, fmt.Errorf("--canary: %w", err)
	case o.time < 0:
		return canaryHow{}, errors.New("--canary-time must not be negative")
	}
	return canaryHow{cfg, o.time}, nil
}

// canaryHow says how a module is tried.
type canaryHow struct {
	canary.Config

	time time.Duration // 0: until a user promotes or aborts it
}

// String returns it for people.
func (h canaryHow) String() string {
	if h.time == 0 {
		return h.Config.String() + ", until wasmctl promote or abort"
	}
	return fmt.Sprintf("%s, for %v", h.Config.String(), h.time)
}

// tried is a module that runs some of the objects, beside the live one. It
// belongs to serve.
type tried struct {
	*raised

	how   canaryHow
	sides *canary.Sides // guarded by runs.mu
}

// raised is a candidate whose watches have synced.
type raised struct {
	candidate *host.Candidate
	plan      *plan
	api       *kubeapi.API // under its policy and limits
	list      []wanted
	added     map[string]*controller.Handle // watches that only it has
}

// beginCanary gives the objects of its side to a candidate. It returns how many
// it asked to be reconciled.
func (s *session) beginCanary(ctx context.Context, up *raised, how canaryHow) int {
	s.endCanary(ctx, canaryReplaced, "another module was swapped in")
	k := &tried{raised: up, how: how, sides: canary.New(how.Config, up.candidate.Digest())}
	cfg := s.probation
	if cfg.Time = how.time; cfg.Time == 0 {
		cfg.Time = untilPromoted
	}
	s.canary = k
	s.watching.hold(k.list)
	s.trials.try(k.candidate, cfg, how.String())
	s.runs.try(k)
	return s.reconcileWhere(ctx, s.runs.onCanary)
}

// How a canary ends without being promoted.
const (
	canaryAborted  = "aborted"  // by a user
	canaryFailed   = "failed"   // it does worse
	canaryReplaced = "replaced" // by another module
)

// endCanary gives the objects of a canary, if there is one, back to the live
// generation.
func (s *session) endCanary(ctx context.Context, how, reason string) {
	k := s.canary
	if k == nil {
		return
	}
	s.canary = nil
	number := k.candidate.Number()
	mine := s.runs.untry()
	s.trials.tried(how, reason)
	k.candidate.Discard()
	if how == canaryFailed {
		s.module.Interrupt(number)
	}
	s.watching.hold(nil)
	s.watching.remove(k.added)
	if s.opts.reconcileOnSwap == reconcileChanged {
		s.done.distrust(number)
		mine = s.done.inDoubt
	}
	n := s.reconcileWhere(ctx, mine)
	level := slog.LevelInfo
	if how == canaryFailed {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "canary ended: the module that is live has all objects again", "how", how, "why", reason, "triggered", n,
		"controller", s.name, "generation", number)
	s.tell(swapResult(how), number, reason)
}

// promoteCanary makes the canary live. The objects that it did not have are
// reconciled.
func (s *session) promoteCanary(ctx context.Context, why string) (uint64, error) {
	k := s.canary
	if k == nil {
		return 0, errNoCanary
	}
	before, settings := s.module.Generation(), s.settingsNumber()
	if err := k.candidate.Promote(ctx); err != nil {
		return 0, err
	}
	s.canary = nil
	mine := s.runs.untry()
	s.trials.tried("", "")
	s.watching.hold(nil)
	same := s.adopt(k.raised) && settings == s.settingsNumber()
	others := func(o *reflector.Object) bool { return !mine(o) }
	n := s.promoted(ctx, k.candidate, promotion{probation: s.probation.Time > 0, same: same, wanted: others})
	s.log.Info("canary promoted", "why", why, "digest", shortDigest(k.candidate.Digest()), "before", before, "triggered", n,
		"controller", s.name, "generation", k.candidate.Number())
	s.tell(swapPromoted, k.candidate.Number(), why)
	return k.candidate.Number(), nil
}

// judgeCanary looks at the canary: one that is worse ends, one whose time has
// passed is promoted.
func (s *session) judgeCanary(ctx context.Context) {
	if s.canary == nil {
		return
	}
	switch v, reason := s.trials.judgeCanary(time.Now()); v {
	case probation.Failed:
		s.endCanary(ctx, canaryFailed, reason)
	case probation.Passed:
		if _, err := s.promoteCanary(ctx, "its time has passed"); err != nil && ctx.Err() == nil {
			s.endCanary(ctx, canaryFailed, err.Error())
		}
	default:
	}
}

// sameCanary reports whether bytes are already tried in the same way.
func (s *session) sameCanary(digest string, how canaryHow) bool {
	return s.canary != nil && s.canary.candidate.Digest() == digest && s.canary.how.String() == how.String()
}

// canaryOf reads what a request says of a canary; nil where it leaves that to
// the process, which was told usual. One that names a time alone has the usual
// objects.
func canaryOf(c *admin.Canary, usual canaryHow) (*canaryHow, error) {
	switch {
	case c == nil:
		return nil, nil
	case c.Share == "" && len(c.Namespaces) == 0 && c.Selector == "" && usual.Enabled():
		usual.time = c.Time
		return &usual, nil
	}
	o := canaryOptions{c.Share, slices.Clone(c.Namespaces), strings.TrimSpace(c.Selector), c.Time}
	how, err := o.parse()
	return &how, err
}
