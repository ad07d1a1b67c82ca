// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/webhook"
	"github.com/wasmctl/wasmctl/runtime/webhook/registration"
)

// Hooks is what the process has done for the webhooks of a controller.
type Hooks struct {
	// Prefix precedes the paths of the controller, and States are those of its webhooks.
	Prefix string
	States registration.States
	// Missing is why webhooks without a state are not registered.
	Missing string
}

// webhookStatuses returns the webhooks and conversions of a controller, those that are served first.
func webhookStatuses(e *engine.Controller, h *Hooks) (list []admin.Webhook) {
	hooks := e.Webhooks()
	if hooks == nil {
		return nil // native
	}
	routes := hooks.Routes()
	for i := range routes.Webhooks {
		if w := ofWebhook(&routes.Webhooks[i], h.Prefix); len(w.Resources) > 0 {
			h.describe(&w, webhook.Name(w.Name))
			list = append(list, w)
		}
	}
	for i := range routes.Conversions {
		w := ofConversion(&routes.Conversions[i])
		h.describe(&w, webhook.ConversionName(&routes.Conversions[i]))
		list = append(list, w)
	}
	for _, u := range e.Unserved() {
		var w admin.Webhook
		if u.Webhook != nil {
			w = ofWebhook(u.Webhook, h.Prefix)
		} else {
			w = ofConversion(u.Conversion)
		}
		w.Message, w.Never = u.Why, u.Never
		list = append(list, w)
	}
	return list
}

// describe adds the state of a webhook.
func (h *Hooks) describe(w *admin.Webhook, name string) {
	s := h.States[name]
	if !s.Since.IsZero() {
		w.Since = &s.Since
	}
	switch {
	case s.Err != nil:
		w.Message = s.Err.Error()
	case w.Since == nil:
		w.Message = cmp.Or(h.Missing, "it is being registered")
	}
}

func ofWebhook(w *abi.Webhook, prefix string) admin.Webhook {
	out := admin.Webhook{Type: string(w.Type), Name: prefix + w.Path}
	for _, r := range w.Rules {
		for _, group := range r.Groups {
			for _, resource := range r.Resources {
				out.Resources = append(out.Resources, strings.TrimSuffix(resource+"."+group, "."))
			}
		}
	}
	slices.Sort(out.Resources)
	out.Resources = slices.Compact(out.Resources)
	return out
}

func ofConversion(c *abi.Conversions) admin.Webhook {
	return admin.Webhook{Type: "convert", Name: schema.GroupKind{Group: c.Group, Kind: c.Kind}.String()}
}
