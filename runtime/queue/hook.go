package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Limits of a Hook.
const (
	// MaxChanges is how many changes of one object wait for the guest one by one.
	// Beyond it the newest are merged into one: the guest is not asked whether
	// to keep that one, and what only a state in the middle named is not mapped.
	MaxChanges = 8
	// HookBackoffInitial is the delay after the first failed try to map a change.
	// It doubles up to HookBackoffMax, with a fifth of jitter.
	HookBackoffInitial = 250 * time.Millisecond
	HookBackoffMax     = 5 * time.Minute
	// mappedTries is how often an object's change is tried before Mapped goes on
	// without it.
	mappedTries = 3
)

// Module is what a Hook asks. Both calls may be made beside reconciles.
type Module interface {
	// Map returns the objects that a change of a watched object concerns.
	Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error)
	// Filter reports whether the change concerns any.
	Filter(ctx context.Context, ev *abi.Event) (bool, error)
}

// HookConfig says what a Hook asks, and who gets the answers. Module and Emit
// are needed.
type HookConfig struct {
	Module Module
	// Controller, Group, Version and Kind stand in the events that the guest gets:
	// the controller's name, and the watched kind.
	Controller, Group, Version, Kind string
	// Mapper maps what the guest's filter keeps; nil asks the guest's map.
	Mapper Mapper
	// Resource is the watched resource, "secrets", for the reason. Only read where
	// the guest maps.
	Resource string
	// ClusterScoped says that the reconciled kind has no namespaces: the keys that
	// the guest returns are brought into this one spelling (rule 1).
	ClusterScoped bool
	// Emit takes the requests of one change. The slice is valid during the call
	// only. Emit may block, until ctx ends at the latest.
	Emit func(ctx context.Context, requests []Request)
}

// Hook asks the guest about changes of one watch: whether to keep them (filter),
// and which objects they concern (map). It decouples the queue from the watch,
// which never waits for a guest (rule 16).
//
// Changes of one object are handled in their order, objects in the order of
// their first waiting change; a first listing comes behind what changes (rule
// 4). A change that the guest cannot map is retried until it can: nothing is
// lost (rule 2), other objects go on. A filter that fails keeps the change (rule
// 23).
type Hook struct {
	cfg     HookConfig
	wake    chan struct{} // has room for one: there may be something to do
	running atomic.Bool
	pending *pending
}

// NewHook returns a Hook. It starts nothing: Run does.
func NewHook(cfg HookConfig) (*Hook, error) {
	if cfg.Module == nil || cfg.Emit == nil {
		return nil, fmt.Errorf("hook[%s]: module and emit are needed", cfg.Resource)
	}
	return &Hook{cfg: cfg, wake: make(chan struct{}, 1), pending: newPending()}, nil
}

// Handle takes a change of the watch. filter says that the guest decides
// whether it is kept. It never blocks, whatever the guest does. It may be called
// before Run.
func (h *Hook) Handle(ev reflector.Event, filter bool) {
	h.pending.add(time.Now(), change{ev: ev, filter: filter})
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Mapped returns a channel that is closed when every change that Handle has
// taken so far has been handled (rule 10). A change that the guest could not map
// three times does not hold it up any longer: that is an error of one object
// (rule 17), and must not keep all others from being reconciled. It stays open
// where Run ends first.
func (h *Hook) Mapped() <-chan struct{} { return h.pending.barrier() }

// Run asks the guest about one change after the other until ctx ends, and
// returns when the guest has. Waiting events stay for the next Run. The error is
// only that it runs already.
func (h *Hook) Run(ctx context.Context) error {
	if !h.running.CompareAndSwap(false, true) {
		return fmt.Errorf("hook[%s]: already running", h.cfg.Resource)
	}
	defer h.running.Store(false)
	for ctx.Err() == nil {
		key, ch, ok := h.pending.next(time.Now())
		if !ok {
			h.wait(ctx)
			continue
		}
		err := h.ask(ctx, &ch)
		if ctx.Err() != nil {
			h.pending.putBack(time.Now(), key)
			break
		}
		h.pending.done(time.Now(), key, ch, err)
	}
	return nil
}

// wait returns when there may be something to do.
func (h *Hook) wait(ctx context.Context) {
	var due <-chan time.Time
	if at, ok := h.pending.nextAt(); ok {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-h.wake:
	case <-ctx.Done():
	}
}

// ask handles one change. The guest's decisions stay in ch, so that a retry
// does not repeat the calls.
func (h *Hook) ask(ctx context.Context, ch *change) error {
	ev := h.cfg.Event(ch.ev)
	if ch.filter {
		keep, err := h.cfg.Module.Filter(ctx, ev)
		if ctx.Err() != nil {
			return ctx.Err() // not the guest's failure
		}
		h.pending.filtered(keep, err)
		if err == nil && !keep {
			return nil
		}
		ch.filter = false
	}
	requests, err := h.requests(ctx, ev, ch.ev)
	if err != nil {
		return err
	}
	if len(requests) > 0 {
		h.cfg.Emit(ctx, requests)
	}
	return nil
}

// requests returns what a change asks for.
func (h *Hook) requests(ctx context.Context, ev *abi.Event, from reflector.Event) ([]Request, error) {
	if h.cfg.Mapper != nil {
		return h.cfg.Mapper(nil, from), nil
	}
	keys, err := h.cfg.Module.Map(ctx, ev)
	if err != nil {
		return nil, fmt.Errorf("map[%s %s]: %w", h.cfg.Resource, ev.Key, err)
	}
	requests := make([]Request, 0, len(keys))
	seen := make(map[abi.Key]struct{}, len(keys))
	for _, key := range keys {
		if key, err = h.spell(key, ev.Key.Namespace); err != nil {
			return nil, fmt.Errorf("map[%s %s]: %w", h.cfg.Resource, ev.Key, err)
		}
		if _, twice := seen[key]; !twice {
			seen[key] = struct{}{}
			requests = append(requests, Request{
				Ref: key, Low: from.Type == reflector.Listed,
				Reason: abi.Reason{Type: abi.ReasonRelated, Resource: h.cfg.Resource, Ref: ev.Key},
			})
		}
	}
	return requests, nil
}

// spell brings a key into the one spelling of the reconciled kind: a namespace
// too many is left out, a missing one is that of the watched object.
func (h *Hook) spell(key abi.Key, namespace string) (abi.Key, error) {
	switch {
	case key.Name == "":
		return key, errors.New("the guest returned a key without a name")
	case h.cfg.ClusterScoped:
		key.Namespace = ""
	case key.Namespace == "" && namespace == "":
		return key, fmt.Errorf("the guest returned key %q: %w", key.Name, ErrNoNamespace)
	case key.Namespace == "":
		key.Namespace = namespace
	}
	return key, nil
}

// Event returns a change as the guest sees it.
func (cfg *HookConfig) Event(from reflector.Event) *abi.Event {
	ev := &abi.Event{
		Controller: cfg.Controller, Group: cfg.Group, Version: cfg.Version, Kind: cfg.Kind, Type: abi.EventUpdated, Key: from.Ref(),
	}
	switch from.Type {
	case reflector.Listed:
		ev.Type = abi.EventListed
	case reflector.Deleted:
		ev.Type = abi.EventDeleted
	case reflector.Applied, reflector.Relisted:
	}
	if from.Old != nil {
		ev.Old = from.Old.Msgpack()
	}
	// A deletion's New is a final state that no run has seen; to the guest the
	// object is gone.
	if from.New != nil && from.Type != reflector.Deleted {
		ev.New = from.New.Msgpack()
	}
	return ev
}

// hookBackoff is the delay after the given number of tries.
func hookBackoff(tries int) time.Duration {
	d := HookBackoffMax
	if shift := tries - 1; shift < 16 {
		d = min(HookBackoffInitial<<shift, HookBackoffMax)
	}
	return d*4/5 + rand.N(d*2/5)
}
