// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Exchange is one operation of a run after its answer: a call of the guest, or a part of its
// declared result. A repeated read of a prune, and an apply that the cache shows to be done, are
// not reported.
type Exchange struct {
	Op          abi.Op
	Kind        kinds.Kind
	Subresource string
	Key         abi.Key // without a name for lists and for generated names
	DryRun      bool
	// Started is the time at which the operation was sent, and Took is its duration. Both are zero
	// if the cache answers or the policy denies.
	Started time.Time
	Took    time.Duration
	// Sent and Answer are the JSON of the request's body and of the answer, or nil. They are valid
	// only during the call, and may contain values of a Secret.
	Sent, Answer []byte
	// Created reports whether the object is new.
	Created bool
	// Before is the state of the object before a write.
	Before Before
	// Err is nil after success. Status is the status that the guest sees.
	Err    error
	Status abi.Status
	// Event is the recorded event, or nil for other operations.
	Event *events.Event
	// TakenFrom are the field managers whose fields the controller takes over with this patch.
	TakenFrom []string
}

// Before is the state of an object when a write of it was sent.
type Before struct {
	// JSON is the state that the API server returned, for WithDryRun and WithAudit, and for the first
	// apply of a child that is not in the cache. It is nil if the object does not exist, has no name yet
	// or must not be read. See Exchange.Sent for its validity.
	JSON []byte
	// Cached is the state in the cache, or nil. Partial means that the cache has only its metadata, or
	// another version of the resource.
	Cached  abi.Stored
	Partial bool
}

// Writes reports whether the operation changes objects or, with DryRun, would have changed them. A
// recorded event does not count.
func (e *Exchange) Writes() bool { return e.Op == abi.OpAPIDelete || slices.Contains(opsWrite, e.Op) }

// Observer is notified of each Exchange of an API, in the goroutine of the run, which waits for it.
// abi.RunFrom(ctx) returns the run. It must not retain e.
type Observer func(ctx context.Context, e *Exchange)

// Observers returns an observer that notifies several observers in order. It is nil if there are
// none, so that they cost nothing.
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

// exchange sends a request, returns the JSON of the answer like carryOut, and notifies the
// observer.
func (a *API) exchange(ctx context.Context, r *request) ([]byte, error) {
	a.lookUp(r)
	started := time.Now()
	js, err := a.carryOut(ctx, r)
	if err = a.noted(ctx, r, err); a.cfg.Observer == nil {
		return js, err
	}
	e := r.exchanged(err)
	e.Started, e.Took, e.Sent, e.Answer, e.Before = started, time.Since(started), r.sent, js, r.before
	if err != nil {
		e.Status = fromError(ctx, r.op, err).Status
	}
	a.cfg.Observer(ctx, e)
	return js, err
}

// lookUp sets the cached state of a request's object, which a write is about to replace.
func (a *API) lookUp(r *request) {
	if a.cfg.Cache == nil || r.key.Name == "" || r.op == abi.OpAPIList {
		return
	}
	cached, complete := a.cfg.Cache.Stored(r.kind.GVR(), r.key)
	r.before = Before{Cached: cached, Partial: !complete}
	if cached == nil {
		r.before.JSON = r.found
	}
}

// compare reports versions that run backwards: that of an answer, if it is older than the state that was
// in the cache before the request.
func (a *API) compare(r *request, version string) {
	if r.before.Cached == nil || r.ResourceVersion != "" || r.DryRun {
		return
	}
	if c, err := resourceversion.CompareResourceVersion(version, r.before.Cached.ResourceVersion()); err == nil && c < 0 {
		a.cfg.Cache.RanBackwards(r.kind.GVR())
	}
}

// check asks the policy for each of the verbs. A refusal is remembered and reported.
func (a *API) check(ctx context.Context, r *request, verbs ...string) *refusal {
	denied := a.cfg.Policy.check(r.attributes(), verbs...)
	if denied != nil {
		a.deny(ctx, r, denied)
	}
	return denied
}

// seen notifies the observer of an answer of the cache, and returns it.
func (a *API) seen(ctx context.Context, r *request, answer abi.Response) abi.Response {
	if a.cfg.Observer != nil {
		e := r.exchanged(nil)
		e.Status = answer.Status
		a.cfg.Observer(ctx, e)
	}
	return answer
}

func (r *request) exchanged(err error) *Exchange {
	e := &Exchange{Op: r.op, Kind: r.kind, Subresource: r.Subresource, Key: r.key, DryRun: r.DryRun, Err: err, Created: r.created, TakenFrom: r.takenFrom}
	if denied, ok := errors.AsType[*refusal](err); ok {
		e.Status = denied.status
	}
	return e
}
