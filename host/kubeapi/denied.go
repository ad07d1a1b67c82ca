// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// maxDenied is the maximum number of different refusals that an API remembers, of the policy and of
	// the API server together.
	maxDenied = 20
	// maxDeniedNamespaces is the maximum number of namespaces in the rule of a refusal. Beyond it,
	// the rule is about all namespaces.
	maxDeniedNamespaces = 10
)

// forbiddenFor is the time after which a refusal of the API server is forgotten if it is not repeated. It
// is longer than the longest back-off, so that an object that keeps failing stays listed.
const forbiddenFor = 10 * time.Minute

// Denied is a right that a module has requested but does not have.
type Denied struct {
	// Rule would allow it in each namespace of its requests. It has no namespaces if there were
	// more than ten, or for requests without a namespace.
	Rule abi.Capability
	// Where names the document that lacks the rule: manifest, grant, both or RBAC.
	Where string
	// Message is the text of the API server for the last request. It is empty unless RBAC lacks the
	// rule.
	Message string
	// Count is the number of requests. Last is the object of the last one, and LastTime its
	// time.
	Count    uint64
	Last     abi.Key
	LastTime time.Time
}

// Denied returns the refusals of the policy so far, and those of the API server that still apply: the
// first twenty different rights, the oldest first. A refusal of the API server no longer applies after
// the same kind of request has succeeded, or ten minutes after the last one. The APIs of WithPolicy share
// it.
func (a *API) Denied() []Denied { return a.refused.all(time.Now()) }

// deny remembers a refusal, logs the first one of its kind, and notifies the observer.
func (a *API) deny(ctx context.Context, r *request, denied *refusal) {
	if a.refused.add(denied, r, time.Now()) {
		a.cfg.Logger.Warn("denied a request of the module; further ones of this kind are only counted, see wasmctl status",
			"op", string(r.op), "object", a.cfg.Secrets.Text(r.key.String()), "error", a.cfg.Secrets.Text(denied.message))
	}
	if a.cfg.Observer != nil {
		a.cfg.Observer(ctx, r.exchanged(denied))
	}
}

// refusals counts refusals by missing right.
type refusals struct {
	mu   sync.Mutex
	list []listed     // guarded by mu
	rbac atomic.Int32 // the number of refusals of the API server in list
}

// listed is a right in refusals.
type listed struct {
	Denied

	id string
	// of are the attributes of the refused requests, without a name and a namespace.
	of Attributes
}

// byKind returns the attributes of a request without a name and a namespace.
func (r *request) byKind() Attributes {
	at := r.attributes()
	at.Name, at.Namespace = "", ""
	return at
}

// add counts a refusal, and reports whether it is the first one of its right. Beyond the limit, it
// returns false.
func (rs *refusals) add(denied *refusal, r *request, now time.Time) bool {
	rule := *denied.rule
	namespaces := rule.Namespaces
	rule.Namespaces = nil
	id := pasteRule(&rule)
	if denied.where == inRBAC {
		id += inRBAC
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.expire(now)
	i := slices.IndexFunc(rs.list, func(c listed) bool { return c.id == id })
	known := i >= 0
	if !known {
		if len(rs.list) >= maxDenied {
			return false
		}
		i = len(rs.list)
		rs.list = append(rs.list, listed{Denied: Denied{Rule: rule, Where: denied.where}, id: id, of: r.byKind()})
	}
	d := &rs.list[i]
	d.Count, d.Last, d.LastTime = d.Count+1, r.key, now
	if denied.where == inRBAC {
		d.Message = denied.message
		rs.rbac.Store(rs.forbidden())
	}
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

// permit removes the refusals of the API server that a successful request disproves: those of its verb
// and, if it made an object, all of its kind. It costs nothing while there are no such refusals.
func (rs *refusals) permit(r *request) {
	if rs.rbac.Load() == 0 {
		return
	}
	of := r.byKind()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.list = slices.DeleteFunc(rs.list, func(c listed) bool {
		return c.Where == inRBAC && c.of == of && (r.created || slices.Contains(c.Rule.Verbs, of.Verb)) &&
			(len(c.Rule.Namespaces) == 0 || slices.Equal(c.Rule.Namespaces, []string{r.key.Namespace}))
	})
	rs.rbac.Store(rs.forbidden())
}

// expire forgets old refusals of the API server. The caller must hold mu.
func (rs *refusals) expire(now time.Time) {
	rs.list = slices.DeleteFunc(rs.list, func(c listed) bool { return c.Where == inRBAC && now.Sub(c.LastTime) > forbiddenFor })
	rs.rbac.Store(rs.forbidden())
}

// forbidden counts the refusals of the API server. The caller must hold mu.
func (rs *refusals) forbidden() (n int32) {
	for i := range rs.list {
		if rs.list[i].Where == inRBAC {
			n++
		}
	}
	return n
}

func (rs *refusals) all(now time.Time) []Denied {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.expire(now)
	list := make([]Denied, len(rs.list))
	for i := range rs.list {
		list[i] = rs.list[i].Denied
	}
	return list
}
