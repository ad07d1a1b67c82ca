package kubeapi

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxDenied bounds how many different refusals an API remembers.
	maxDenied = 20
	// maxDeniedNamespaces bounds how many namespaces the rule of one names; beyond
	// that it is about all of them.
	maxDeniedNamespaces = 10
)

// Denied is one right that a module has asked for and does not have.
type Denied struct {
	// Rule would allow it, in each namespace in which it was asked for; none if
	// there were more than ten, or it is about no namespace.
	Rule abi.Capability
	// Where says what lacks the rule: manifest, grant or both.
	Where string
	// Count is how often it was asked for, Last for which object and when.
	Count    uint64
	Last     abi.Key
	LastTime time.Time
}

// Denied returns what the policy has refused until now: the first twenty
// different rights, the oldest first. It is shared by the APIs of WithPolicy.
func (a *API) Denied() []Denied { return a.refused.all() }

// deny remembers a refusal, logs it where it is the first of its kind, and tells
// the observer.
func (a *API) deny(ctx context.Context, r *request, denied *refusal) {
	if a.refused.add(denied, r.key, time.Now()) {
		a.log.Warn("the module was denied what it may not do; further refusals of this are only counted, see wasmctl status",
			"op", string(r.op), "object", a.secrets.Text(r.key.String()), "error", a.secrets.Text(denied.message))
	}
	if a.observer != nil {
		a.observer(ctx, r.exchanged(denied))
	}
}

// refusals counts refusals by the right that is missing.
type refusals struct {
	mu    sync.Mutex
	list  []Denied       // guarded by mu
	place map[string]int // of each right in list; guarded by mu
	// everywhere has the rights whose namespaces are not listed; guarded by mu.
	everywhere map[string]bool
}

// add counts a refusal, and reports whether it is the first of its right. Beyond
// the bound nothing is.
func (rs *refusals) add(denied *refusal, key abi.Key, now time.Time) bool {
	rule := *denied.rule
	namespaces := rule.Namespaces
	rule.Namespaces = nil
	b, err := json.Marshal(&rule)
	if err != nil {
		panic("BUG: capability: " + err.Error()) // strings and lists of strings
	}
	id := string(b)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	i, known := rs.place[id]
	if !known {
		if len(rs.list) >= maxDenied {
			return false
		}
		if rs.place == nil {
			rs.place, rs.everywhere = map[string]int{}, map[string]bool{}
		}
		i = len(rs.list)
		rs.place[id] = i
		rs.list = append(rs.list, Denied{Rule: rule, Where: denied.where})
	}
	d := &rs.list[i]
	d.Count, d.Last, d.LastTime = d.Count+1, key, now
	rs.locate(id, d, namespaces)
	return !known
}

// locate adds namespaces to a refusal's rule, for a caller that holds mu.
func (rs *refusals) locate(id string, d *Denied, namespaces []string) {
	if len(namespaces) == 0 {
		rs.everywhere[id] = true
	}
	for _, ns := range namespaces {
		if !slices.Contains(d.Rule.Namespaces, ns) {
			d.Rule.Namespaces = append(slices.Clip(d.Rule.Namespaces), ns)
		}
	}
	if rs.everywhere[id] || len(d.Rule.Namespaces) > maxDeniedNamespaces {
		rs.everywhere[id], d.Rule.Namespaces = true, nil
	}
}

func (rs *refusals) all() []Denied {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Clone(rs.list)
}
