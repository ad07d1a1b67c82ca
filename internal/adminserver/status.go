// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Status returns the phase of a controller and, once it runs, its figures.
func Status(of Controller) admin.Controller {
	c := admin.Controller{Name: of.Name}
	if of.Engine != nil {
		c = running(of.Engine)
		c.Webhooks = webhookStatuses(of.Engine, &of.Hooks)
		c.Signers = of.Modules.Signers(c.Digest)
	}
	c.Module, c.Phase, c.Message, c.Since, c.Restarting = of.Source, of.Phase, of.Message, of.Since, of.Restarting
	c.State = controllerState(&c, time.Now())
	return c
}

// maxListed is the maximum number of objects in quarantine, and in hot loops, in a status.
const maxListed = 20

func running(e *engine.Controller) admin.Controller {
	stats, t := e.Runtime.Stats(), e.Telemetry
	c := admin.Controller{
		Name: e.Name(), Kind: e.Kind().Name(), Paused: stats.Paused,
		Ready: stats.Ready, Waiting: stats.Waiting, Running: stats.Running, Runs: stats.Started, Failures: map[string]uint64{},
		Workers: e.Concurrency(), OldestReady: history.Duration(stats.OldestReady), Failing: stats.Reconciles.Failing,
		HotLoops: stats.Reconciles.Loops.Episodes, HotObjects: stats.Reconciles.Loops.Hot, Denied: t.Denied(), History: int64(t.History.Bytes()), HostMemory: e.HostMemory(),
		Revisions: e.Revisions(), MissingRights: append(deniedRights(e), ungrantedRights(e)...),
	}
	if m := e.Module; m != nil {
		c.Digest, c.Fuel, c.Revision, c.Memory = m.Digest(), m.Fuel(), m.Revision(), m.Memory()
	}
	if m := e.Module; m != nil {
		if p, ok := m.GuestProcess(); ok {
			c.Process = &admin.Process{PID: p.PID, Memory: p.Memory}
		}
	}
	if f := logging.FeedOf(e.Logger()); f != nil {
		c.LogsDropped = f.Dropped()
	}
	if runs := t.History.Running(); len(runs) > 0 {
		r := &runs[0]
		c.LongestRun = &admin.LongestRun{Object: r.Key.String(), ID: r.ID, Since: r.Since}
	}
	if key, run, ok := t.History.LastFailure(); ok {
		c.LastFailure = &admin.LastFailure{Object: key.String(), At: run.Started.Add(time.Duration(run.Took)), Kind: run.Kind, Error: run.Error}
	}
	for kind, n := range stats.Failures {
		c.Failures[string(kind)] = n
	}
	addLimits(&c, e)
	c.Watches = watchStatuses(stats.Watches)
	return c
}

// addLimits adds objects in quarantine and in hot loops, and reached limits, to a status.
func addLimits(c *admin.Controller, e *engine.Controller) {
	for _, h := range e.Runtime.Hot(maxListed) {
		c.Hot = append(c.Hot, admin.HotObject{Object: h.Key.String(), Cause: h.Cause.String(), Runs: h.Runs, Delay: history.Duration(h.Delay)})
	}
	view, finalizer := e.Stranded()
	if finalizer != "" {
		c.Finalizer = &admin.Finalizer{Name: finalizer, Namespaces: e.Namespaces()}
	}
	if all := view.Stranded(time.Now()); len(all) > 0 || view.Unknown != "" {
		c.Stranded = &admin.Stranded{Finalizer: finalizer, Total: len(all), Unknown: view.Unknown}
		for _, o := range all[:min(maxListed, len(all))] {
			c.Stranded.Objects = append(c.Stranded.Objects, admin.StrandedObject{Object: o.Key.String(), Deleting: !o.Deleted.IsZero()})
		}
	}
	list, total := e.Runtime.Quarantined(maxListed)
	c.Quarantined = total
	for _, q := range list {
		c.Quarantine = append(c.Quarantine, admin.QuarantinedObject{
			Object: q.Key.String(), Since: q.Since, Until: q.Until, Runs: q.Runs, Kind: string(q.Kind), Error: e.Telemetry.Secrets.Text(q.Text),
		})
	}
	for name, n := range e.LimitStats() {
		if c.Limits == nil {
			c.Limits = map[string]uint64{}
		}
		c.Limits[string(name)] = n
	}
}

// watchStatuses returns the watches; those for the slots of one source are merged into one.
func watchStatuses(list []controller.WatchState) (out []admin.Watch) {
	type part struct{ at, slots int }
	parts := map[watcher.Source]*part{}
	for i := range list {
		w, source := watchStatus(&list[i]), list[i].Source
		if source.Shard.N == 0 {
			out = append(out, w)
			continue
		}
		of := source.Shard.N
		source.Shard = slots.Range{}
		p := parts[source]
		if p == nil {
			p = &part{at: len(out)}
			parts[source], out = p, append(out, w)
		}
		p.slots++
		all := &out[p.at]
		if p.slots > 1 {
			addWatch(all, &w)
		}
		all.Source = fmt.Sprintf("%s (%d of %d shards)", source, p.slots, of)
	}
	return out
}

// addWatch merges the watch of another slot: a phase other than ready takes precedence, and
// so does the oldest progress.
func addWatch(all, w *admin.Watch) {
	if all.Phase == "ready" && (w.Phase != "ready" || w.Since.After(all.Since)) {
		all.Phase, all.Since = w.Phase, w.Since
	}
	all.Message = cmp.Or(all.Message, w.Message)
	all.Objects += w.Objects
	if all.LastProgress == nil || w.LastProgress != nil && w.LastProgress.Before(*all.LastProgress) {
		all.LastProgress = w.LastProgress
	}
}

func watchStatus(w *controller.WatchState) admin.Watch {
	out := admin.Watch{
		Source: w.Source.String(), Phase: w.State.Phase.String(), Since: w.State.Since, Objects: w.State.Objects, Message: w.State.Message,
	}
	if !w.State.LastProgress.IsZero() {
		out.LastProgress = &w.State.LastProgress
	}
	if w.Hook != nil && w.Hook.Failing > 0 {
		out.Unmapped = w.Hook.Failing
		if out.Message == "" {
			out.Message = w.Hook.LastError.Error()
		}
	}
	return out
}

// deniedRights returns the requests that the module was denied.
func deniedRights(e *engine.Controller) []admin.MissingRight {
	hide := e.Telemetry.Secrets.Text
	var list []admin.MissingRight
	for _, d := range e.Denied() {
		for _, part := range []*[]string{&d.Rule.Namespaces, &d.Rule.Names, &d.Rule.Fields} { // the module has chosen these
			*part = slices.Clone(*part)
			for i := range *part {
				(*part)[i] = hide((*part)[i])
			}
		}
		list = append(list, admin.MissingRight{
			Rule: json.RawMessage(plan.RuleText(&d.Rule)), Missing: d.Where, Message: hide(d.Message), Count: d.Count, Last: hide(d.Last.String()), LastTime: d.LastTime,
		})
	}
	return list
}

// ungrantedRights returns the rights that the module requests but was not granted, whether
// or not it has used them.
func ungrantedRights(e *engine.Controller) []admin.MissingRight {
	var list []admin.MissingRight
	for _, rule := range e.Refused() {
		list = append(list, admin.MissingRight{Rule: json.RawMessage(plan.RuleText(&rule)), Missing: "grant"})
	}
	return list
}

// hangsAfter is the duration after which a run is shown as hanging.
const hangsAfter = 5 * time.Second

// controllerState summarizes the most important fact about a controller.
func controllerState(c *admin.Controller, now time.Time) string {
	if c.Phase != admin.PhaseRunning {
		return strings.TrimSuffix(c.Phase+": "+humanize.FirstLine(c.Message), ": ")
	}
	if c.Paused {
		return "paused"
	}
	for _, w := range c.Watches {
		if w.Phase != "ready" {
			return strings.TrimSuffix(fmt.Sprintf("watches not ready: %s: %s: %s", w.Phase, w.Source, w.Message), ": ")
		}
	}
	if r := c.LongestRun; r != nil && now.Sub(r.Since) > hangsAfter {
		return fmt.Sprintf("hangs: %s has been running for %s", r.Object, humanize.Age(now, r.Since))
	}
	last := ""
	if e := c.LastFailure; e != nil {
		last = fmt.Sprintf(": %s %s ago: %s: %s", e.Object, humanize.Age(now, e.At), e.Kind, humanize.FirstLine(e.Error))
	}
	switch {
	case c.Quarantined > 0:
		return humanize.Plural(c.Quarantined, "object") + " quarantined" + last
	case c.Failing > 0:
		return "fails" + last
	case slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Unmapped > 0 }):
		return "map fails"
	case c.Stranded != nil && c.Stranded.Total > 0:
		return strandedText(c.Stranded)
	case len(c.Hot) > 0:
		return fmt.Sprintf("%s in a hot loop: %s: %s", humanize.Plural(max(c.HotObjects, len(c.Hot)), "object"), c.Hot[0].Object, c.Hot[0].Cause)
	}
	return admin.StateOK
}

// strandedText describes stranded objects: "1 object stranded: shop/a: its deletion waits: it has the finalizer F but is not watched".
func strandedText(s *admin.Stranded) string {
	first, waits := "", ""
	if len(s.Objects) > 0 {
		first = s.Objects[0].Object + ": "
		if s.Objects[0].Deleting {
			waits = "its deletion waits: "
		}
	}
	return fmt.Sprintf("%s stranded: %s%sit has the finalizer %s but is not watched", humanize.Plural(s.Total, "object"), first, waits, s.Finalizer)
}

// Top implements admin.Service.
func (s Service) Top(objects int) admin.Top {
	now := time.Now()
	top := admin.Top{Controllers: []admin.TopController{}, Objects: []admin.TopObject{}}
	for _, c := range s.Controllers() {
		e := c.Engine
		if e == nil {
			continue
		}
		load, busiest := e.Telemetry.History.Busiest(now, objects)
		stats := e.Runtime.Stats()
		top.Controllers = append(top.Controllers, admin.TopController{
			Name: e.Name(), Load: load, Decoded: stats.DecodedRate + load.Answers, Memory: e.Memory(), HostMemory: e.HostMemory(),
			Workers: e.Concurrency(), Running: stats.Running,
		})
		for _, b := range busiest {
			top.Objects = append(top.Objects, admin.TopObject{Controller: e.Name(), Object: b.Key.String(), Load: b.Load})
		}
	}
	slices.SortStableFunc(top.Controllers, func(a, b admin.TopController) int { return cmp.Compare(b.Busy, a.Busy) })
	slices.SortStableFunc(top.Objects, func(a, b admin.TopObject) int { return cmp.Compare(b.Busy, a.Busy) })
	top.Objects = top.Objects[:min(objects, len(top.Objects))]
	return top
}
