package controller

import (
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
		if uid := controllerOf(ev.Old); uid != "" {
			delete(c.byOwner[uid], ev.Ref())
			if len(c.byOwner[uid]) == 0 {
				delete(c.byOwner, uid)
			}
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
	objects := make([]*reflector.Object, 0, len(c.byOwner[uid]))
	for _, o := range c.byOwner[uid] {
		objects = append(objects, o)
	}
	return objects
}

func controllerOf(o *reflector.Object) string {
	for owner := range o.Owners() {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}
