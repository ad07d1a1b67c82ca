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

// own knows the events of the finalizers that this controller adds. The run that
// adds one goes on with the object as the API server answers it, so that the event
// brings nothing new: it would only cut a back-off short.
//
// An event is the controller's own if it leads to the state that was answered. The
// run was given that state, with all that others had changed before it; what they
// change after it leads to another one. So nothing is lost.
type own struct {
	waiting atomic.Int64 // length of byKey: events take no lock where there is none

	mu    sync.Mutex
	byKey map[abi.Key]*addition // guarded by mu; until the event has come
}

// addition is a finalizer that is being added, or whose event is still to come.
// own.mu guards it.
type addition struct {
	to string // the resourceVersion that was answered; empty before

	// The last event that came before the answer, and what hands it on.
	early   string // the resourceVersion that it leads to
	deliver func() // nil where there is none
}

func newOwn() *own { return &own{byKey: map[abi.Key]*addition{}} }

// begin notes that a finalizer is going to be added.
func (o *own) begin(key abi.Key) *addition {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := &addition{}
	o.set(key, a)
	return a
}

// end takes in the answer: the resourceVersion with the finalizer, empty where none
// was added.
func (o *own) end(key abi.Key, a *addition, to string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey[key] != a {
		return // the object has gone meanwhile
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

// take reports whether an event is not to be handed on: it is this controller's
// own, or may turn out to be, and deliver is kept for the case that it does not.
func (o *own) take(ev reflector.Event, deliver func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := ev.Ref()
	a := o.byKey[key]
	if a == nil {
		return false
	}
	a.flush() // another one follows it, and nothing changes the order
	if ev.Type == reflector.Deleted {
		o.set(key, nil)
		return false
	}
	version := ev.New.ResourceVersion()
	if a.to == "" { // the object runs, so that nothing has to wait for the answer
		a.early, a.deliver = version, deliver
		return true
	}
	if !reflector.Older(version, a.to) {
		o.set(key, nil)
	}
	return version == a.to
}

// flush hands on the event that was kept; the caller holds mu.
func (a *addition) flush() {
	if a.deliver != nil {
		a.deliver()
		a.deliver = nil
	}
}

// set changes an entry; the caller holds mu.
func (o *own) set(key abi.Key, a *addition) {
	if a == nil {
		delete(o.byKey, key)
	} else {
		o.byKey[key] = a
	}
	o.waiting.Store(int64(len(o.byKey)))
}

// finalizers is a Cluster whose added finalizers are known.
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

// stateOf returns what tells a state of a packed object from others.
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
