package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// children says which objects of an owned kind are controlled by which owner,
// by the owner's uid. The store would have to be read whole to know.
type children struct {
	mu      sync.Mutex
	byOwner map[string]map[abi.Key]*reflector.Object // guarded by mu
}

func newChildren() *children {
	return &children{byOwner: map[string]map[abi.Key]*reflector.Object{}}
}

// observe follows one event of the watch.
func (c *children) observe(ev reflector.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ev.Old != nil {
		uid := controllerOf(ev.Old)
		if delete(c.byOwner[uid], ev.Ref()); len(c.byOwner[uid]) == 0 {
			delete(c.byOwner, uid)
		}
	}
	if ev.New == nil || ev.Type == reflector.Deleted {
		return
	}
	uid := controllerOf(ev.New)
	if uid == "" {
		return
	}
	if c.byOwner[uid] == nil {
		c.byOwner[uid] = map[abi.Key]*reflector.Object{}
	}
	c.byOwner[uid][ev.Ref()] = ev.New
}

// of returns the objects whose controller has this uid.
func (c *children) of(uid string) []*reflector.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.byOwner[uid]))
}

func controllerOf(o *reflector.Object) string {
	for owner := range o.Owners() {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}
