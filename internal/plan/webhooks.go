// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Webhook is a webhook of a manifest that was granted.
type Webhook struct {
	// Webhook is that of the manifest. If it is limited to namespaces, its rules and its selector are
	// narrowed to them.
	abi.Webhook

	// In are the namespaces whose requests the webhook may judge. If empty, all, and requests for
	// cluster-scoped objects.
	In []string
}

// Unserved is a webhook or a conversion of a manifest that is not served. One of Webhook and Conversion
// is set.
type Unserved struct {
	Webhook    *abi.Webhook
	Conversion *abi.Conversions
	// Why is the reason. Never is set if the options exclude it whatever is granted.
	Why   string
	Never bool
}

// webhook is a webhook or a conversion of a manifest, with the rights that it needs. One of hook and
// conversion is set.
type webhook struct {
	hook       *abi.Webhook
	conversion *abi.Conversions
	rights     []abi.Capability
}

// webhooks returns the webhooks and conversions of a manifest. Like capabilities, their rights are
// limited to the namespaces of the options.
func (o *Options) webhooks(ctx context.Context, finder Finder, of Watched, m *abi.Manifest) (list []webhook, err error) {
	for i := range m.Webhooks {
		w := webhook{hook: &m.Webhooks[i], rights: grant.WebhookRules(&m.Webhooks[i])}
		for j := range w.rights {
			c := &w.rights[j]
			if len(o.Namespaces) > 0 && namespaced(ctx, finder, c) {
				c.Namespaces = slices.Clone(o.Namespaces)
			}
		}
		list = append(list, w)
	}
	for i := range m.Conversions {
		c := &m.Conversions[i]
		if o.Confine != "" { // it needs no right, because none would help
			list = append(list, webhook{conversion: c})
			continue
		}
		resource := of.Resource
		if c.Group != of.Group || c.Kind != of.Kind.Kind {
			if resource, err = convertible(ctx, finder, c); err != nil {
				return nil, err
			}
		}
		list = append(list, webhook{conversion: c, rights: []abi.Capability{grant.ConversionRule(c.Group, resource)}})
	}
	return list, nil
}

// namespaced reports whether a right is about objects in namespaces.
func namespaced(ctx context.Context, finder Finder, c *abi.Capability) bool {
	return c.Group == "*" || c.Resource == "*" || finder.Namespaced(ctx, c.Group, c.Resource)
}

// convertible returns the resource of a kind, which need not exist yet.
func convertible(ctx context.Context, finder Finder, c *abi.Conversions) (resource string, err error) {
	if len(c.Versions) == 0 {
		return kinds.Plural(c.Kind), nil
	}
	k, pending, err := finder.Of(ctx, &abi.Watch{Group: c.Group, Version: c.Versions[0], Kind: c.Kind, Optional: true})
	if pending {
		return kinds.Plural(c.Kind), nil
	}
	return k.Resource, err
}

// webhookRights returns the rights of all webhooks and conversions.
func (p *Plan) webhookRights() (rights []abi.Capability) {
	for i := range p.hooks {
		rights = append(rights, p.hooks[i].rights...)
	}
	return rights
}

// admit sets the webhooks and conversions of a plan that rules grant, and those that are not served. A
// webhook needs all of its rights. If they are granted in some namespaces only, it is limited to these.
func (p *Planner) admit(ctx context.Context, next *Plan, rules []abi.Capability) {
	for i := range next.hooks {
		w := &next.hooks[i]
		if w.conversion != nil {
			switch {
			case p.Confine != "":
				next.Unserved = append(next.Unserved, Unserved{Conversion: w.conversion, Never: true, Why: elsewhere})
			case len(grant.Beyond(rules, w.rights)) == 0:
				next.Conversions = append(next.Conversions, *w.conversion)
			default:
				next.Unserved = append(next.Unserved, Unserved{Conversion: w.conversion, Why: notAdmitted})
			}
			continue
		}
		in, ok := p.admittedIn(ctx, rules, w.rights)
		if hook := limited(*w.hook, in); ok && len(hook.Rules) > 0 {
			next.Webhooks = append(next.Webhooks, hook)
		} else {
			next.Unserved = append(next.Unserved, Unserved{Webhook: w.hook, Why: notAdmitted})
		}
	}
}

// Reasons why something is not served.
const (
	notAdmitted = "it is not granted"
	elsewhere   = "a Reconciler converts nothing, because a CRD belongs to the cluster; let a ClusterReconciler run the module if its objects must be converted"
)

// admittedIn returns the namespaces in which rules grant all rights of a webhook. An empty list
// means all, and cluster-scoped objects. ok is false if there are none.
func (p *Planner) admittedIn(ctx context.Context, rules, rights []abi.Capability) (in []string, ok bool) {
	everywhere := !slices.ContainsFunc(rights, func(c abi.Capability) bool { return len(c.Namespaces) > 0 || !grant.Admits(rules, &c, "") })
	if everywhere {
		return nil, true
	}
	for _, r := range slices.Concat(rules, rights) {
		in = append(in, r.Namespaces...)
	}
	slices.Sort(in)
	in = slices.DeleteFunc(slices.Compact(in), func(ns string) bool {
		return slices.ContainsFunc(rights, func(c abi.Capability) bool {
			return len(c.Namespaces) > 0 && !slices.Contains(c.Namespaces, ns) || !grant.Admits(rules, &c, ns) || !namespaced(ctx, p.Finder, &c)
		})
	})
	return in, len(in) > 0
}

// limited returns a webhook limited to namespaces; none means no limit.
func limited(w abi.Webhook, in []string) Webhook {
	if len(in) == 0 {
		return Webhook{Webhook: w}
	}
	w.Rules = slices.DeleteFunc(slices.Clone(w.Rules), func(r abi.WebhookRule) bool { return r.Scope == "Cluster" })
	for i := range w.Rules {
		w.Rules[i].Scope = "Namespaced"
	}
	selector := fmt.Sprintf("%s in (%s)", corev1.LabelMetadataName, strings.Join(in, ", "))
	if w.Namespaces != "" {
		selector = w.Namespaces + ", " + selector
	}
	w.Namespaces = selector
	return Webhook{Webhook: w, In: in}
}

// LimitWebhooks removes the webhooks and conversions of a plan that would show the module objects that
// the impersonated user may not get, or let it change objects that the user may not update. Otherwise a
// tenant, who writes its own grant, could get around RBAC. The error lists what was removed, and the
// missing rights; it is nil if everything remains. Without impersonation, the grant alone decides.
func (a *Access) LimitWebhooks(ctx context.Context, p *Plan) error {
	if a.User == "" {
		return nil
	}
	var errs []error
	refused := func(what string, u Unserved, in []string, changes bool, rights ...abi.Capability) bool {
		verbs := []string{kubeapi.VerbGet}
		if changes {
			verbs = append(verbs, kubeapi.VerbUpdate)
		}
		var missing []string
		for i := range rights {
			c := abi.Capability{Group: rights[i].Group, Resource: rights[i].Resource, Verbs: verbs, Namespaces: in}
			for _, need := range kubeapi.CapabilityAccess(&c) {
				if !a.Client.HasAccess(ctx, need) {
					missing = append(missing, RuleText(&c))
				}
			}
		}
		if missing = slices.Compact(missing); len(missing) > 0 {
			u.Why = fmt.Sprintf("user %s lacks these rights in RBAC: %s", a.User, strings.Join(missing, "; "))
			p.Unserved, errs = append(p.Unserved, u), append(errs, fmt.Errorf("%s is not served, because %s", what, u.Why))
		}
		return len(missing) > 0
	}
	p.Webhooks = slices.DeleteFunc(p.Webhooks, func(w Webhook) bool {
		return refused("webhook "+w.Path, Unserved{Webhook: &w.Webhook}, w.In, w.Type == abi.WebhookDefault, grant.WebhookRules(&w.Webhook)...)
	})
	p.Conversions = slices.DeleteFunc(p.Conversions, func(c abi.Conversions) bool {
		i := slices.IndexFunc(p.hooks, func(h webhook) bool {
			return h.conversion != nil && h.conversion.Group == c.Group && h.conversion.Kind == c.Kind
		})
		return refused("the conversion of "+c.Kind, Unserved{Conversion: &c}, nil, true, p.hooks[i].rights...)
	})
	return errors.Join(errs...)
}
