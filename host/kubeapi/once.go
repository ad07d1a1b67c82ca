// SPDX-License-Identifier: Apache-2.0

package kubeapi

import "sync"

// maxOnce is the maximum number of texts that a once remembers, because they come from guests.
const maxOnce = 256

// once reports whether a text is new, up to a limit. After that, no text is new.
type once struct {
	mu   sync.Mutex
	seen map[string]struct{} // guarded by mu
}

// first reports whether this is the first call with text.
func (o *once) first(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[text]; ok || len(o.seen) >= maxOnce {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]struct{}{}
	}
	o.seen[text] = struct{}{}
	return true
}
