// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"sync"
	"time"
)

// Times until a module that could not be compiled is compiled again: doubled each time.
const (
	firstRecompile = time.Minute
	mostRecompile  = time.Hour
)

// maxRefusals is the number of modules of a tenant that are remembered.
const maxRefusals = 100

// refusals remembers the modules of each tenant that could not be compiled, because compiling
// one may take minutes. Tenants do not share them, so that none can make the module of
// another fail by exhausting the machine. The zero value is ready for use, by any number of
// goroutines.
type refusals struct {
	mu sync.Mutex
	of map[string]map[string]*refusal // by tenant and digest; guarded by mu
}

// refusal is a module that could not be compiled.
type refusal struct {
	err   error
	wait  time.Duration
	until time.Time // of the next attempt
}

// find returns the error of a module that must not be compiled again yet, or nil.
func (r *refusals) find(now time.Time, tenant, digest string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if past := r.of[tenant][digest]; past != nil && now.Before(past.until) {
		return past.err
	}
	return nil
}

// add records that a module could not be compiled.
func (r *refusals) add(now time.Time, tenant, digest string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	mine := r.of[tenant]
	if mine == nil {
		mine = map[string]*refusal{}
		if r.of == nil {
			r.of = map[string]map[string]*refusal{}
		}
		r.of[tenant] = mine
	}
	wait := firstRecompile
	if past := mine[digest]; past != nil {
		wait = min(2*past.wait, mostRecompile)
	} else if len(mine) >= maxRefusals {
		delete(mine, soonest(mine))
	}
	mine[digest] = &refusal{err, wait, now.Add(wait)}
}

// forget removes modules that were not compiled again for long; the caller holds mu.
func (r *refusals) forget(now time.Time) {
	for tenant, mine := range r.of {
		for digest, past := range mine {
			if now.After(past.until.Add(mostRecompile)) {
				delete(mine, digest)
			}
		}
		if len(mine) == 0 {
			delete(r.of, tenant)
		}
	}
}

// soonest returns the module that may be compiled again first.
func soonest(mine map[string]*refusal) (digest string) {
	for d, past := range mine {
		if digest == "" || past.until.Before(mine[digest].until) {
			digest = d
		}
	}
	return digest
}
