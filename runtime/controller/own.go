// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// own recognizes the events of finalizers that this controller has added. The run that adds one continues with the object that the API
// server returned, so the event brings nothing new: it would only cut a back-off short.
//
// An event is the controller's own if it leads to the state that was returned. The run has that state, with all earlier changes by others;
// later changes by others lead to a different state. So nothing is lost.
type own struct {
	waiting atomic.Int64 // length of byKey, so that events take no lock while it is empty

	mu    sync.Mutex
	byKey map[abi.Key]*addition // guarded by mu; until the event has arrived
}

// addition is a finalizer that is being added, or whose event has not arrived yet. It is guarded by own.mu.
type addition struct {
	to string // the returned resourceVersion; empty before the response

	// The last event that arrived before the response, and the function that delivers it.
	early   string // the resourceVersion that it leads to
	deliver func() // nil if there is none
}

// begin records that a finalizer is about to be added.
func (o *own) begin(key abi.Key) *addition {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := &addition{}
	o.set(key, a)
	return a
}

// end records the response: the resourceVersion with the finalizer, or empty if none was added.
func (o *own) end(key abi.Key, a *addition, to string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey[key] != a {
		return // the object was deleted meanwhile
	}
	if to != "" && a.early == to {
		o.set(key, nil)
		return
	}
	a.flush()
	if a.to = to; to == "" || a.early != "" && !reflector.Older(a.early, to) {
		o.set(key, nil)
	}
}

// take reports whether an event must not be delivered now. Either it is this controller's own, or it may be: then deliver is stored, and
// called if it turns out not to be.
func (o *own) take(ev reflector.Event, deliver func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := ev.Ref()
	a := o.byKey[key]
	if a == nil {
		return false
	}
	a.flush() // preserve the order: this event follows it
	if ev.Type == reflector.Deleted {
		o.set(key, nil)
		return false
	}
	version := ev.New.ResourceVersion()
	if a.to == "" { // the object is running, so nothing needs to wait for the response
		a.early, a.deliver = version, deliver
		return true
	}
	if !reflector.Older(version, a.to) {
		o.set(key, nil)
	}
	return version == a.to
}

// flush delivers the stored event. The caller must hold mu.
func (a *addition) flush() {
	if a.deliver != nil {
		a.deliver()
		a.deliver = nil
	}
}

// set changes an entry. The caller must hold mu.
func (o *own) set(key abi.Key, a *addition) {
	if a == nil {
		delete(o.byKey, key)
	} else {
		o.byKey[key] = a
	}
	o.waiting.Store(int64(len(o.byKey)))
}

// finalizers is a Cluster that records added finalizers in own.
type finalizers struct {
	applier.Cluster

	own *own
}

// AddFinalizer implements applier.Cluster.
func (f finalizers) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	key, from := stateOf(object)
	a := f.own.begin(key)
	updated, err := f.Cluster.AddFinalizer(ctx, object, finalizer)
	to := ""
	if err == nil {
		_, to = stateOf(updated)
	}
	if to == from { // nothing was written
		to = ""
	}
	f.own.end(key, a, to)
	return updated, err
}

// stateOf returns the fields that identify a state of a packed object.
func stateOf(object []byte) (key abi.Key, resourceVersion string) {
	c := packed.At(packed.Find(object, "metadata"))
	for range c.MapLen() {
		switch string(c.Text()) {
		case "namespace":
			key.Namespace = string(c.Text())
		case "name":
			key.Name = string(c.Text())
		case "resourceVersion":
			resourceVersion = string(c.Text())
		default:
			c.Skip()
		}
	}
	return key, resourceVersion
}
