// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// sink is the store that client-go's reflector writes to: it passes each call to the loop of the watch, and returns when the loop has
// received it.
type sink struct {
	source Source
	lw     *listWatcher
	done   <-chan struct{}
	epoch  uint64 // in which the reflector was started
}

var (
	_ cache.ReflectorStore         = (*sink)(nil)
	_ cache.ReflectorBookmarkStore = (*sink)(nil)
)

// Add implements cache.ReflectorStore.
func (s *sink) Add(obj any) error { return s.send(opApply, obj) }

// Update implements cache.ReflectorStore.
func (s *sink) Update(obj any) error { return s.send(opApply, obj) }

// Delete implements cache.ReflectorStore.
func (s *sink) Delete(obj any) error { return s.send(opDelete, obj) }

// Replace implements cache.ReflectorStore.
func (s *sink) Replace(items []any, resourceVersion string) error {
	list := make([]*reflector.Object, 0, len(items))
	for _, item := range items {
		o, err := packed(item)
		if err != nil {
			return err
		}
		if s.source.has(o) {
			list = append(list, o)
		}
	}
	s.put(op{kind: opReplace, list: list, version: resourceVersion, listing: s.lw.listing, epoch: s.epoch})
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *sink) Bookmark(resourceVersion string) error {
	s.put(op{kind: opBookmark, version: resourceVersion})
	return nil
}

// Resync implements cache.ReflectorStore. It is never called, because the reflector has no resync period.
func (s *sink) Resync() error { return nil }

func (s *sink) send(kind opKind, obj any) error {
	o, err := packed(obj)
	if err == nil && s.source.has(o) {
		s.put(op{kind: kind, obj: o})
	}
	return err
}

func (s *sink) put(op op) {
	select {
	case s.lw.ops <- op:
	case <-s.done:
	}
}

func packed(obj any) (*reflector.Object, error) {
	o, ok := obj.(*reflector.Object)
	if !ok {
		return nil, fmt.Errorf("BUG: the reflector stores a %T", obj)
	}
	return o, nil
}
