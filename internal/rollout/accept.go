// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// accept plans the manifest of the module with a digest; it returns an error if a running
// controller cannot take the module.
func (r *Rollout) accept(ctx context.Context, digest string, m *abi.Manifest) (*plan.Plan, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if name := r.cfg.Host.NameFor(m); name != r.cfg.Controller {
		return nil, fmt.Errorf("the module would rename the controller, and with it its field manager, grants and Lease: it is named %s after its module, and the new one has the name %s; "+
			"give the module its former name, or start wasmctl with --name %[1]s", r.cfg.Controller, name)
	}
	if diff := r.otherKind(m); diff != "" { // the API server may never have its kind
		return nil, cannotChange(diff)
	}
	planner, err := r.cfg.Planner.Of(digest)
	if err != nil {
		return nil, err
	}
	kind, err := planner.Kind(ctx, m)
	if err != nil {
		return nil, err
	}
	if diff := r.differences(kind, m); len(diff) > 0 {
		return nil, cannotChange(diff...)
	}
	next, err := planner.Plan(ctx, r.cfg.Kind, m)
	if err != nil {
		return nil, err
	}
	limit, err := planner.Limit(ctx, r.cfg.Kind, r.cfg.Plan)
	if err != nil {
		return nil, err
	}
	if err := next.WithinLimit(limit); err != nil && !r.Options.AllowMoreRights {
		return nil, err
	}
	added := r.addedBy(next)
	if err := r.cfg.Access.Check(ctx, r.cfg.Kind, added...); err != nil {
		return nil, err
	}
	if err := r.cfg.Access.LimitWebhooks(ctx, next); err != nil {
		r.log.Warn("not all webhooks are served", "reason", err.Error(), "digest", humanize.Digest(digest))
	}
	return next, r.cfg.Access.CheckSelectors(ctx, added...)
}

func cannotChange(diff ...string) error {
	return fmt.Errorf("the module changes what a running controller cannot change; restart wasmctl, or create the Reconciler anew, with the new module: %s",
		strings.Join(diff, "; "))
}

// otherKind describes the kind of a manifest if it differs from the controller's kind. It
// does not ask the API server, which may not have the kind.
func (r *Rollout) otherKind(m *abi.Manifest) string {
	is := r.cfg.Kind.GVK()
	if r.cfg.Planner.For != nil || m.For == nil || m.For.Group == is.Group && m.For.Kind == is.Kind {
		return ""
	}
	return fmt.Sprintf("for: %v, was %v", plan.GVK(m.For), is)
}

// addedBy returns the kinds of a plan that are not yet watched in the same way.
func (r *Rollout) addedBy(next *plan.Plan) (added []plan.Watched) {
	known := map[string]bool{}
	for _, k := range r.plan.Related {
		known[k.ID()] = true
	}
	for _, k := range next.Related {
		if !known[k.ID()] && !r.watches.goesOn(k) {
			added = append(added, k)
		}
	}
	return added
}

// differences lists the changes to properties that a controller takes from its first module
// permanently.
func (r *Rollout) differences(kind plan.Watched, m *abi.Manifest) (diff []string) {
	first, of := r.plan.Manifest, r.cfg.Kind
	add := func(what string, old, new any) {
		diff = append(diff, fmt.Sprintf("%s: %v, was %v", what, new, old))
	}
	if old, new := of.ID(), kind.ID(); old != new {
		if of.GVK() != kind.GVK() {
			add("for", of.GVK(), kind.GVK())
		} else {
			add("for", old, new)
		}
	}
	if first.Finalizer != m.Finalizer {
		add("finalizer", strconv.Quote(first.Finalizer), strconv.Quote(m.Finalizer))
	}
	return diff
}
