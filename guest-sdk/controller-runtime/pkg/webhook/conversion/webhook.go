// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// Webhook is the conversion webhook of a program. It is a Converter of all
// kinds of its scheme that have a converter in the registry, or a hub.
type Webhook struct {
	scheme   *runtime.Scheme
	registry Registry
	kinds    []schema.GroupKind
}

// NewWebhookHandler returns a *Webhook.
func NewWebhookHandler(scheme *runtime.Scheme, registry ...Registry) http.Handler {
	w := &Webhook{scheme: scheme, registry: NewRegistry()}
	if len(registry) > 0 {
		w.registry = registry[0]
	}
	return w
}

// Serve adds a kind whose objects the host lets the module convert.
func (w *Webhook) Serve(gk schema.GroupKind) {
	if !slices.Contains(w.kinds, gk) {
		w.kinds = append(w.kinds, gk)
	}
}

// Kinds returns the kinds that Serve has added, or otherwise those among likely
// that the webhook can convert: the scheme may have kinds of other programs.
func (w *Webhook) Kinds(likely []schema.GroupKind) []schema.GroupKind {
	if len(w.kinds) > 0 {
		return w.kinds
	}
	return slices.DeleteFunc(likely, func(gk schema.GroupKind) bool {
		_, registered := w.registry.GetConverter(gk)
		return !registered && w.hub(gk) == nil
	})
}

// ServeHTTP answers with an error: requests to a module do not come over HTTP.
func (*Webhook) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	http.Error(rw, "webhook: the host calls the webhooks of a module, which has no server", http.StatusNotImplemented)
}

// ConvertObject implements Converter.
func (w *Webhook) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	from, to := src.GetObjectKind().GroupVersionKind(), dst.GetObjectKind().GroupVersionKind()
	switch {
	case from.GroupKind() != to.GroupKind():
		return fmt.Errorf("convert %s: %s is another kind", from, to)
	case from == to:
		return fmt.Errorf("convert %s: both objects are of this version", from)
	}
	if c, ok := w.registry.GetConverter(from.GroupKind()); ok {
		return c.ConvertObject(ctx, src, dst)
	}
	hub, _ := src.(conversion.Hub)
	spoke, ok := src.(conversion.Convertible)
	switch {
	case hub != nil:
	case !ok:
		return fmt.Errorf("convert %s: %T has no ConvertTo", from, src)
	default:
		if end, ok := dst.(conversion.Hub); ok {
			return spoke.ConvertTo(end)
		}
		if hub = w.hub(from.GroupKind()); hub == nil {
			return fmt.Errorf("convert %s: no version is the hub", from)
		}
		if err := spoke.ConvertTo(hub); err != nil {
			return fmt.Errorf("convert %s to the hub %T: %w", from, hub, err)
		}
	}
	end, ok := dst.(conversion.Convertible)
	if !ok {
		return fmt.Errorf("convert to %s: %T has no ConvertFrom", to, dst)
	}
	return end.ConvertFrom(hub)
}

// hub returns an empty object of the version that is the hub of a kind, or nil.
func (w *Webhook) hub(gk schema.GroupKind) conversion.Hub {
	for _, gvk := range versionsOf(w.scheme, gk) {
		obj, err := w.scheme.New(gvk)
		if err != nil {
			continue
		}
		if hub, ok := obj.(conversion.Hub); ok {
			return hub
		}
	}
	return nil
}
