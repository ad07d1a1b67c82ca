// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxDenied is the maximum number of different refusals that an API remembers.
	maxDenied = 20
	// maxDeniedNamespaces is the maximum number of namespaces in the rule of a refusal. Beyond it,
	// the rule is about all namespaces.
	maxDeniedNamespaces = 10
)

// Denied is a right that a module has requested but does not have.
type Denied struct {
	// Rule would allow it in each namespace of its requests. It has no namespaces if there were
	// more than ten, or for requests without a namespace.
	Rule abi.Capability
	// Where names the document that lacks the rule: manifest, grant or both.
	Where string
	// Count is the number of requests. Last is the object of the last one, and LastTime its
	// time.
	Count    uint64
	Last     abi.Key
	LastTime time.Time
}

// Denied returns the refusals of the policy so far: the first twenty different rights, the oldest
// first. The APIs of WithPolicy share it.
func (a *API) Denied() []Denied { return a.refused.all() }

// deny remembers a refusal, logs the first one of its kind, and notifies the observer.
func (a *API) deny(ctx context.Context, r *request, denied *refusal) {
	if a.refused.add(denied, r.key, time.Now()) {
		a.log.Warn("denied a request of the module; further ones of this kind are only counted, see wasmctl status",
			"op", string(r.op), "object", a.secrets.Text(r.key.String()), "error", a.secrets.Text(denied.message))
	}
	if a.observer != nil {
		a.observer(ctx, r.exchanged(denied))
	}
}

// refusals counts refusals by missing right.
type refusals struct {
	mu   sync.Mutex
	list []Denied // guarded by mu
	ids  []string // of each right in list; guarded by mu
}

// add counts a refusal, and reports whether it is the first one of its right. Beyond the limit, it
// returns false.
func (rs *refusals) add(denied *refusal, key abi.Key, now time.Time) bool {
	rule := *denied.rule
	namespaces := rule.Namespaces
	rule.Namespaces = nil
	id := pasteRule(&rule)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	i := slices.Index(rs.ids, id)
	known := i >= 0
	if !known {
		if len(rs.list) >= maxDenied {
			return false
		}
		i = len(rs.list)
		rs.list, rs.ids = append(rs.list, Denied{Rule: rule, Where: denied.where}), append(rs.ids, id)
	}
	d := &rs.list[i]
	d.Count, d.Last, d.LastTime = d.Count+1, key, now
	everywhere := len(namespaces) == 0 || known && len(d.Rule.Namespaces) == 0
	for _, ns := range namespaces {
		if !slices.Contains(d.Rule.Namespaces, ns) {
			d.Rule.Namespaces = append(slices.Clip(d.Rule.Namespaces), ns)
		}
	}
	if everywhere || len(d.Rule.Namespaces) > maxDeniedNamespaces {
		d.Rule.Namespaces = nil
	}
	return !known
}

func (rs *refusals) all() []Denied {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Clone(rs.list)
}
