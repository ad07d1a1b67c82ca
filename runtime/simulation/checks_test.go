// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing/synctest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

func (c *ctrl) waitIdle() { synctest.Wait() }

// begin records that the guest was called, and checks the conditions at that time.
func (c *ctrl) begin(req *abi.Request, finalize bool) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[req.Key]++
	r := &run{seq: c.seq.Add(1), number: c.runs[req.Key], guest: true, views: c.see(req.Key)}
	if req.Object != nil {
		r.object = decode(req.Object)
	}
	if c.running[req.Key] != nil {
		c.violated("rule 1: %s: %s runs twice at once", c.spec.name, req.Key)
	}
	c.running[req.Key] = r
	if want := c.fails[req.Key] + 1; req.Attempt != want {
		c.violated("rule 18: %s: %s: attempt %d, want %d", c.spec.name, req.Key, req.Attempt, want)
	}
	c.checkObject(req, r, finalize)
	c.checkWrites(req)
	return r
}

// checkObject checks the guest's input (rules 20 and 21).
func (c *ctrl) checkObject(req *abi.Request, r *run, finalize bool) {
	o := r.object
	if o == nil {
		if !c.spec.deletes || finalize {
			c.violated("rule 20: %s: the guest is called for %s, which is gone", c.spec.name, req.Key)
		}
		return
	}
	if applier.Paused(o.GetAnnotations()[applier.PausedAnnotation]) {
		c.violated("%s: the guest is called for %s, which is paused", c.spec.name, req.Key)
	}
	if c.spec.finalizer {
		if has := slices.Contains(o.GetFinalizers(), c.finalizerName()); !has || finalize != (o.GetDeletionTimestamp() != nil) {
			c.violated("rule 21: %s: %s: finalize %t, finalizer %t, deleting %v", c.spec.name, req.Key, finalize, has, o.GetDeletionTimestamp())
		}
		if !finalize {
			c.applied[o.GetUID()] = req.Key
		}
	}
}

// checkWrites checks that the run sees the writes of the previous one (rule 22).
func (c *ctrl) checkWrites(req *abi.Request) {
	writes := c.awaited[req.Key]
	if c.spec.awaitWrites < 0 || req.Stale {
		return
	}
	for _, w := range writes {
		kind := c.spec.kind
		if w.resource != kind.Resource {
			kind = parts
			if c.epochs[0] != 1 {
				continue // it was not watched all the time
			}
		}
		if w.resource == c.spec.kind.Resource && c.spec.selector != "" {
			continue
		}
		if len(c.spec.namespaces) > 0 && !slices.Contains(c.spec.namespaces, w.key.Namespace) {
			continue
		}
		b, err := c.cache.Get(kind.GVR(), w.key)
		switch {
		case err != nil:
			c.violated("rule 22: %s: %s: %v", c.spec.name, req.Key, err)
		case b != nil && version(decode(b)) < w.version, b == nil && !c.api.DeletedAfter(kind, w.key, w.version-1):
			c.violated("rule 22: %s: %s does not see that the run before wrote %s %s at version %d", c.spec.name, req.Key, w.resource, w.key, w.version)
		}
	}
}

// checkOutcome checks a run at its end. The caller must hold mu.
func (c *ctrl) checkOutcome(r *run) {
	out := &r.out
	if due, ok := c.due[out.Key]; ok && r.from.Before(due) && onlyTimers(out) {
		c.violated("rule 25: %s: %s ran %v before it was due", c.spec.name, out.Key, due.Sub(r.from))
	}
	if last := c.last[out.Key]; last != nil && last.out.Delay > 0 && r.from.Before(last.to.Add(last.out.Delay)) {
		c.violated("%s: %s ran although it was held", c.spec.name, out.Key)
	}
	if out.Reasons.First == (abi.Reason{}) {
		c.violated("%s: %s ran for no reason", c.spec.name, out.Key)
	}
}

func onlyTimers(out *applier.Outcome) bool {
	for _, r := range append([]abi.Reason{out.Reasons.First}, out.Reasons.More...) {
		if r.Type != abi.ReasonRequeue && r.Type != abi.ReasonRetry {
			return false
		}
	}
	return out.Reasons.Dropped == 0
}

// checkMapped checks, when the guest maps a config, that this should not have happened before the first job: everything
// that existed when the watch began is mapped then (rule 10). The caller must hold mu.
func (c *ctrl) checkMapped(ev *abi.Event) {
	i := slices.IndexFunc(c.spec.relations, func(w relationSpec) bool { return w.spec == "func" })
	w := &c.spec.relations[i]
	if ev.Type == abi.EventListed && c.open && c.asked[ev.Key] == 1 && !w.late && !w.optional {
		c.violated("rule 10: %s started before the guest was asked about %s", c.spec.name, ev.Key)
	}
}

// checkReady checks, at the first job, that everything required has been listed (rule 10). The caller must hold mu.
func (c *ctrl) checkReady() {
	listed := func(resource, selector string, namespaces []string) {
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			if !c.api.Listed(resource, ns, selector) {
				c.violated("rule 10: %s starts before %s of namespace %q have been listed", c.spec.name, resource, ns)
			}
		}
	}
	listed(c.spec.kind.Resource, c.spec.selector, c.spec.namespaces)
	for i := range c.spec.relations {
		w := &c.spec.relations[i]
		if w.late || w.optional {
			continue
		}
		listed(w.kind.Resource, w.selector, w.namespaces)
	}
	if c.active != nil && !isClosed(c.active) {
		c.violated("%s starts before it is elected", c.spec.name)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// checkCrowd checks whether the pool still has too many shared slots in use for the clients that have joined since:
// then one of them must wait.
func (s *sim) checkCrowd() {
	if s.pool == nil || !s.crowded {
		return
	}
	shared := 0
	for _, c := range s.ctrls {
		c.mu.Lock()
		shared += max(0, c.jobs-1)
		c.mu.Unlock()
	}
	p := s.pool.Stats()
	s.crowded = shared > p.Limit-p.Clients
}

// checkIdle checks, while everything waits for time to pass, that no job waits unnecessarily (rule 5).
func (c *ctrl) checkIdle() {
	if !c.isRunning() {
		return
	}
	st := c.c.Stats()
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.Running != c.jobs {
		c.violated("%s: %d jobs run, Stats says %d", c.spec.name, c.jobs, st.Running)
	}
	// Of the due requests, at most one per running key is blocked.
	if !c.open || c.paused || st.Ready <= st.Running || st.Running >= c.spec.concurrency {
		return
	}
	if c.pool == nil {
		c.violated("rule 5: %s: %d requests are due, %d of %d slots are in use", c.spec.name, st.Ready, st.Running, c.spec.concurrency)
		return
	}
	p := c.pool.Stats()
	switch {
	case st.Running == 0 && !c.crowded:
		c.violated("rule 5: %s: %d requests are due, and it does not get the slot that is reserved for it: %+v", c.spec.name, st.Ready, p)
	case p.Running+p.Clients <= p.Limit:
		c.violated("rule 5: %s: %d requests are due, and free slots are not used: %+v", c.spec.name, st.Ready, p)
	}
}

// checkEnd checks the state that the controller leaves behind.
func (c *ctrl) checkEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs != 0 || len(c.running) != 0 {
		c.violated("%s: %d jobs and %d guests are left", c.spec.name, c.jobs, len(c.running))
	}
	if !c.spec.finalizer {
		return
	}
	there := map[abi.Key]string{}
	for key, o := range c.api.All(c.spec.kind) {
		there[key] = string(o.GetUID())
	}
	for uid, key := range c.applied {
		if there[key] != string(uid) && !c.finalized[uid] {
			c.violated("rule 21: %s: %s was deleted without finalize", c.spec.name, key)
		}
	}
}
