package kubeapi

import "sync"

// maxOnce bounds how many different texts a once remembers: they come from
// guests.
const maxOnce = 256

// once says of each text whether it is new, up to a bound; after that nothing
// is new.
type once struct {
	mu   sync.Mutex
	seen map[string]struct{} // guarded by mu
}

// first reports whether it is asked about text for the first time.
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
