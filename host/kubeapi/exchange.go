package kubeapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Exchange is one operation that a run has asked for, once it is answered: a
// call of the guest's, or a part of what its result declares. A prune that
// looks again, or an apply that is settled by the cache, is not told.
type Exchange struct {
	Op          abi.Op
	Kind        kinds.Kind
	Subresource string
	Key         abi.Key // without a name for lists and for names that the API server makes up
	DryRun      bool
	// Started is when the operation was about to be sent, and Took for how long it
	// was on its way; both are zero for what the cache answers or the policy denies.
	Started time.Time
	Took    time.Duration
	// Sent and Answer are the JSON of the request's body and of the answer, nil
	// where there is none. They are valid during the call only, and may be what a
	// Secret holds.
	Sent, Answer []byte
	// Created says that the API server did not have the object before.
	Created bool
	// Before is the JSON of the object before a write of WithDryRun, nil if it is
	// not there, is not known yet or may not be read. As Sent.
	Before []byte
	// Err is nil for what was done. Status is its status as the guest sees it.
	Err    error
	Status abi.Status
	// Event is what was recorded; nil for other operations.
	Event *events.Event
	// Missing is the rule that the policy would need; nil unless Status is
	// StatusDenied.
	Missing *abi.Capability
}

// Writes reports whether the operation changes objects, or, with DryRun, would
// have. An event that is recorded is none of these.
func (e *Exchange) Writes() bool { return e.Op == abi.OpAPIDelete || slices.Contains(opsWrite, e.Op) }

// Observer is notified of each Exchange of an API, by the goroutine of the run,
// which waits for it. abi.RunFrom(ctx) is the run. It must not keep e.
type Observer func(ctx context.Context, e *Exchange)

// Observers tells several observers, in order; nil if there is none, so that
// nothing is spent then.
func Observers(list ...Observer) Observer {
	if len(list) == 0 {
		return nil
	}
	return func(ctx context.Context, e *Exchange) {
		for _, o := range list {
			o(ctx, e)
		}
	}
}

// exchange sends a request and returns the JSON of the answer, as carryOut does,
// and tells the observer.
func (a *API) exchange(ctx context.Context, r *request) ([]byte, error) {
	if a.observer == nil {
		return a.carryOut(ctx, r)
	}
	started := time.Now()
	js, err := a.carryOut(ctx, r)
	e := r.exchanged(err)
	e.Started, e.Took, e.Sent, e.Answer, e.Before = started, time.Since(started), r.sent, js, r.before
	if err != nil {
		e.Status = fromError(ctx, r.op, err).Status
	}
	a.observer(ctx, e)
	return js, err
}

// check asks the policy for each of the verbs; what it denies is remembered and
// told.
func (a *API) check(ctx context.Context, r *request, verbs ...string) *refusal {
	denied := a.policy.check(r.attributes(), verbs...)
	if denied != nil {
		a.deny(ctx, r, denied)
	}
	return denied
}

// seen tells the observer of what the cache has answered, and returns it.
func (a *API) seen(ctx context.Context, r *request, answer abi.Response) abi.Response {
	if a.observer != nil {
		e := r.exchanged(nil)
		e.Status = answer.Status
		a.observer(ctx, e)
	}
	return answer
}

func (r *request) exchanged(err error) *Exchange {
	e := &Exchange{Op: r.op, Kind: r.kind, Subresource: r.Subresource, Key: r.key, DryRun: r.DryRun, Err: err, Created: r.created}
	if denied, ok := errors.AsType[*refusal](err); ok {
		e.Status, e.Missing = denied.status, denied.rule
	}
	return e
}
