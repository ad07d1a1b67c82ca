// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/admit"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// share is the part of the webhooks that one controller of the module serves.
type share struct {
	webhooks    []wasmctl.Webhook
	conversions []wasmctl.Conversion
}

// shares returns the webhooks of each controller: those about the kind that it
// reconciles. The first controller has those about other kinds.
func (m *module) shares(all []*declare.Controller) []share {
	list := make([]share, len(all))
	of := make([]schema.GroupVersionKind, len(all)) // the reconciled kinds
	for i, c := range all {
		if c.Anchor != "" {
			continue
		}
		if r, err := c.Reconciler(m.GetScheme()); err == nil { // an error is reported when the controller starts
			of[i] = schema.GroupVersionKind{Group: r.Manifest.For.Group, Version: r.Manifest.For.Version, Kind: r.Manifest.For.Kind}
		}
	}
	server, ok := m.options.WebhookServer.(interface{ Hooks() []webhook.Hook })
	if !ok || program.Without(program.Webhooks) {
		return list
	}
	for _, h := range server.Hooks() {
		switch by := h.Handler.(type) {
		case *admission.Webhook:
			w := configured(h.Path, by)
			at := slices.IndexFunc(of, func(gvk schema.GroupVersionKind) bool { return concerns(w.Rules, gvk) })
			list[max(at, 0)].webhooks = append(list[max(at, 0)].webhooks, w)
		case *conversion.Webhook:
			likely := make([]schema.GroupKind, len(of))
			for i := range of {
				likely[i] = of[i].GroupKind()
			}
			for _, gk := range by.Kinds(slices.Clone(likely)) {
				at := max(slices.Index(likely, gk), 0)
				list[at].conversions = append(list[at].conversions, admit.Conversion(m.GetScheme(), by, gk))
			}
		default:
			m.options.Logger.Info("is not served: the host calls webhooks of type *admission.Webhook", "path", h.Path, "type", fmt.Sprintf("%T", by))
		}
	}
	return list
}

// configured returns the webhook with the settings that wasmctl build found for
// its path. If there are none, it has no rules, and is not served.
func configured(path string, by *admission.Webhook) wasmctl.Webhook {
	w := program.Hook{}
	if i := slices.IndexFunc(program.Hooks, func(h program.Hook) bool { return h.Path == path }); i >= 0 {
		w = program.Hooks[i]
	}
	w.Path = path
	if w.Rules == nil {
		w.Rules = []wasmctl.WebhookRule{}
	}
	judge := admit.By(by)
	if w.Type == "default" || w.Type == "" && strings.HasPrefix(path, "/mutate") {
		w.Default = judge
	} else {
		w.Validate = judge
	}
	return w.Webhook
}

// concerns reports whether one of the rules is about the kind.
func concerns(rules []wasmctl.WebhookRule, gvk schema.GroupVersionKind) bool {
	resource := kinds.Resource(gvk).Resource
	return slices.ContainsFunc(rules, func(r wasmctl.WebhookRule) bool {
		return slices.Contains(r.Groups, gvk.Group) && slices.Contains(r.Resources, resource)
	})
}
