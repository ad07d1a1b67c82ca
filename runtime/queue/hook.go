// SPDX-License-Identifier: Apache-2.0

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
	// MaxChanges is how many changes of one object wait for the guest individually. Beyond it, the newest changes are merged into one: that
	// one is not filtered, and objects that only an intermediate state refers to are not mapped.
	MaxChanges = 8
	// HookBackoffInitial is the delay after the first failed attempt to map a change. It doubles up to HookBackoffMax, with a jitter of 20
	// percent.
	HookBackoffInitial = 250 * time.Millisecond
	HookBackoffMax     = 5 * time.Minute
	// mappedTries is how often the change of an object is tried before Mapped no longer waits for it.
	mappedTries = 3
)

// Module is the part of a guest that a Hook calls. Both methods may be called concurrently with reconciles.
type Module interface {
	// Map returns the objects that are affected by a change of a watched object.
	Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error)
	// Filter reports whether any object is affected by the change.
	Filter(ctx context.Context, ev *abi.Event) (bool, error)
}

// HookConfig configures a Hook. Module and Emit are required.
type HookConfig struct {
	Module Module
	// Controller, Group, Version and Kind are copied to the events for the guest: the controller's name, and the watched kind.
	Controller, Group, Version, Kind string
	// Mapper maps the changes that the guest's filter passes. If nil, the guest's map does.
	Mapper Mapper
	// Resource is the watched resource, such as "secrets", for the reason. It is used only if the guest maps.
	Resource string
	// ClusterScoped means that the reconciled kind has no namespaces. The keys that the guest returns are normalized accordingly (rule 1).
	ClusterScoped bool
	// Emit receives the requests of one change. The slice is valid only during the call. Emit may block until ctx ends.
	Emit func(ctx context.Context, requests []Request)
}

// Hook asks the guest about the changes of one watch: whether to process them (filter), and which objects they affect (map). It decouples
// the queue from the watch, which never waits for a guest (rule 16).
//
// Changes of one object are handled in order, and objects in the order of their first waiting change; a first listing has lower priority
// than changes (rule 4). A change that the guest fails to map is retried until it succeeds, so that nothing is lost (rule 2); other objects
// are handled meanwhile. If the filter fails, the change is processed (rule 23).
type Hook struct {
	cfg     HookConfig
	wake    chan struct{} // signals, with room for one, that there may be something to do
	running atomic.Bool
	pending *pending
}

// NewHook returns a Hook. It starts nothing; Run does.
func NewHook(cfg HookConfig) (*Hook, error) {
	if cfg.Module == nil || cfg.Emit == nil {
		return nil, fmt.Errorf("hook[%s]: Module and Emit are required", cfg.Resource)
	}
	return &Hook{cfg: cfg, wake: make(chan struct{}, 1), pending: newPending()}, nil
}

// Handle queues a change of the watch. filter means that the guest's filter is called for it. Handle never blocks, and may be called before
// Run.
func (h *Hook) Handle(ev reflector.Event, filter bool) {
	h.pending.add(time.Now(), change{ev: ev, filter: filter})
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Mapped returns a channel that is closed once every change that Handle has received so far has been handled (rule 10). It no longer waits
// for a change that the guest has failed to map three times: that is an error of one object (rule 17), and must not prevent all others from
// being reconciled. If Run ends first, the channel stays open.
func (h *Hook) Mapped() <-chan struct{} { return h.pending.barrier() }

// Run asks the guest about one change after the other until ctx ends, and returns when the last call of the guest has returned. Waiting
// changes stay for the next Run. Run fails only if it is already running.
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

// wait blocks until there may be something to do.
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

// ask handles one change. It records the guest's filter decision in ch, so that a retry does not repeat that call.
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

// requests returns the requests that a change causes.
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

// spell normalizes a key to the scope of the reconciled kind: a superfluous namespace is removed, and a missing one is that of the watched
// object.
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

// Event converts a change to the guest's representation.
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
	// The New of a deletion is a final state that no run has seen; to the guest, the object is gone.
	if from.New != nil && from.Type != reflector.Deleted {
		ev.New = from.New.Msgpack()
	}
	return ev
}

// hookBackoff returns the delay after the given number of attempts.
func hookBackoff(tries int) time.Duration {
	d := HookBackoffMax
	if shift := tries - 1; shift < 16 {
		d = min(HookBackoffInitial<<shift, HookBackoffMax)
	}
	return d*4/5 + rand.N(d*2/5)
}
