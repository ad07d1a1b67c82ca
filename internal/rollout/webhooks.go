// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// maxAttempts bounds how often a call is repeated because its revision was replaced meanwhile.
const maxAttempts = 3

// live is the plan of the live revision as workers see it. It never changes; it is replaced.
type live struct {
	// refused are the rights that the module requests but was not granted.
	refused  []abi.Capability
	unserved []plan.Unserved
	routes   webhook.Routes
	in       map[string][]string // the namespaces of a webhook, by path; without an entry, all
}

// publish makes a plan that of the live revision for workers.
func (r *Rollout) publish(p *plan.Plan, digest string) {
	l := &live{refused: p.Refused, unserved: p.Unserved, in: map[string][]string{}, routes: webhook.Routes{
		Conversions: p.Conversions, Owned: []schema.GroupKind{r.cfg.Kind.GVK().GroupKind()}, Digest: digest,
	}}
	for i := range p.Webhooks {
		w := &p.Webhooks[i]
		l.routes.Webhooks = append(l.routes.Webhooks, w.Webhook)
		if len(w.In) > 0 {
			l.in[w.Path] = w.In
		}
	}
	r.live.Store(l)
}

// serves reports whether a webhook is one of the live module.
func (l *live) serves(w *abi.Webhook) bool {
	return slices.ContainsFunc(l.routes.Webhooks, func(o abi.Webhook) bool { return o.Path == w.Path && o.Type == w.Type })
}

// Refused returns the rights that the live module requests but was not granted.
func (r *Rollout) Refused() []abi.Capability { return r.live.Load().refused }

// Unserved returns the webhooks and conversions of the live module that are not served.
func (r *Rollout) Unserved() []plan.Unserved { return r.live.Load().unserved }

// Routes returns the webhooks and conversions of the live module that were granted: the same pointer
// until they change.
func (r *Rollout) Routes() *webhook.Routes { return &r.live.Load().routes }

// Admit judges a request to the API server, and returns the revision that did. The canary judges the
// requests about its objects. The module has no say outside of the granted namespaces, nor on a webhook
// that it no longer has since a swap: such a request is allowed.
func (r *Rollout) Admit(ctx context.Context, w *abi.Webhook, a *abi.Admission) (res abi.AdmissionResult, revision uint64, err error) {
	for range maxAttempts {
		l := r.live.Load()
		if in := l.in[w.Path]; !l.serves(w) || len(in) > 0 && !slices.Contains(in, a.Key.Namespace) {
			return abi.AdmissionResult{}, 0, nil
		}
		admit := r.cfg.Module.Admit
		if revision = r.cfg.Module.Revision(); r.view.Load().canary != nil {
			if c := r.judge(w, a); c != nil {
				revision, admit = c.Number(), c.Admit
			}
		}
		res, err = admit(ctx, w.Type, a)
		object := a.Key
		object.Name = cmp.Or(object.Name, a.ID)
		if r.counted(ctx, revision, probation.Run{Key: object, Denied: res.Denied != nil}, err) {
			break
		}
	}
	return res, revision, err
}

// Convert returns the objects of c in another version, in their order. A list mixes objects, and its
// result is stored, so the live revision converts all of them, also those of a canary.
func (r *Rollout) Convert(ctx context.Context, c *abi.Conversion) (objects [][]byte, revision uint64, err error) {
	for range maxAttempts {
		revision = r.cfg.Module.Revision()
		objects, err = r.cfg.Module.Convert(ctx, c)
		if r.counted(ctx, revision, probation.Run{Key: abi.Key{Name: c.ID}}, err) {
			break
		}
	}
	return objects, revision, err
}

// counted counts a call of a webhook on a revision, and reports whether its result is final. It is not
// if the call failed because the revision was replaced meanwhile. An error of the host, such as too
// many calls, is not counted.
func (r *Rollout) counted(ctx context.Context, revision uint64, call probation.Run, err error) bool {
	call.Failure = FailureOf(err)
	if err == nil || call.Failure != "" {
		r.called(revision, call)
	}
	if err == nil || ctx.Err() != nil {
		return true
	}
	k := r.view.Load().canary
	return !errors.Is(err, host.ErrClosed) && (revision == r.cfg.Module.Revision() || k != nil && k.Number() == revision)
}

// FailureOf returns the kind of a failure of a call of a webhook; it is empty if the guest did not
// cause the error.
func FailureOf(err error) abi.FailureKind {
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		return call.Kind
	}
	if _, ok := errors.AsType[*abi.ResultError](err); ok {
		return abi.FailureError
	}
	return ""
}

// judge returns the canary if it judges a request: its module has the webhook, and the object is the
// canary's.
func (r *Rollout) judge(w *abi.Webhook, a *abi.Admission) *host.Candidate {
	k := r.view.Load().canary
	if k == nil || !slices.ContainsFunc(k.plan.Webhooks, func(o plan.Webhook) bool { return o.Path == w.Path && o.Type == w.Type }) {
		return nil
	}
	o := objectIn(a)
	reconciled := a.Target.Group == r.cfg.Kind.Group && a.Target.Resource == r.cfg.Kind.Resource
	if !k.assignment.Would(&o, reconciled) {
		return nil
	}
	return k.Candidate
}

// objectIn returns the object of a request: as it was before the request, or as it will be created.
func objectIn(a *abi.Admission) canary.Object {
	object := a.Old
	if object == nil {
		object = a.Object
	}
	meta := packed.Find(object, "metadata")
	uid, list := packed.At(packed.Find(meta, "uid")), packed.At(packed.Find(meta, "labels"))
	set := labels.Set{}
	for range list.MapLen() {
		key := string(list.Text())
		set[key] = string(list.Text())
	}
	// The API server sets the uid, and perhaps the name, later.
	return canary.Object{Key: a.Key, UID: cmp.Or(string(uid.Text()), a.Key.Name, a.ID), Labels: set}
}
