// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// waiter is a blocked call of AwaitVersion.
type waiter struct {
	ref     ObjectRef
	version string
	done    chan struct{} // closed, under Store.mu, when the store includes the version
}

// AwaitVersion waits until the store includes the write of ref to which the API server assigned resourceVersion, so that a run sees what
// the previous run wrote (rule 22). The store includes the write if its object has that version or a later one, or if an event, a bookmark
// or a list of a later version has arrived, even if that write deleted the object or removed it from the watch's selection.
//
// It returns nil at once for a resourceVersion that cannot be compared: "", or that of an API that does not number its versions. The error
// is that of ctx, which should have a deadline, because the watch may be down.
func (s *Store) AwaitVersion(ctx context.Context, ref ObjectRef, resourceVersion string) error {
	s.mu.RLock()
	included := s.includes(ref, resourceVersion)
	s.mu.RUnlock()
	if included {
		return nil
	}
	w := &waiter{ref, resourceVersion, make(chan struct{})}
	if s.await(w) {
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiters = slices.DeleteFunc(s.waiters, func(v *waiter) bool { return v == w })
		return ctx.Err()
	}
}

// await adds w to the waiters. If the store already includes the version, it returns true instead.
func (s *Store) await(w *waiter) (included bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.includes(w.ref, w.version) {
		return true
	}
	s.waiters = append(s.waiters, w)
	return false
}

// includes reports whether a write is in the store. The caller must hold mu.
func (s *Store) includes(ref ObjectRef, version string) bool {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return true
	}
	if atLeast(s.version, version) {
		return true
	}
	o := s.objects[ref]
	return o != nil && atLeast(o.resourceVersion, version)
}

// wake releases the waiters whose version is now included. The caller must hold mu for writing.
func (s *Store) wake() {
	if len(s.waiters) == 0 {
		return
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		over := s.includes(w.ref, w.version)
		if over {
			close(w.done)
		}
		return over
	})
}

// reached records that the store includes version. It is ignored before the first list, and if lists have no version: the first events of a
// watch are then in no order. The caller must hold mu for writing.
func (s *Store) reached(version string) {
	if Older(s.version, version) {
		s.version = version
	}
}

// atLeast reports whether version a is b or later. It is false if the versions cannot be compared.
func atLeast(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c >= 0
}

// Older reports whether resourceVersion a is before b. It is false if the versions cannot be compared.
func Older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}
