// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

var (
	crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

	// configurations are the resources of webhook configurations, by the type of their webhooks.
	configurations = map[abi.WebhookType]schema.GroupVersionKind{
		abi.WebhookValidate: {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		abi.WebhookDefault:  {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	}
)

// plural returns the resource of a webhook configuration.
func plural(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// object is an object of the cluster in one round.
type object struct {
	gvr schema.GroupVersionResource
	was *unstructured.Unstructured // without resourceVersion if it does not exist
	now *unstructured.Unstructured // as it should be; nil if it should not exist
}

// exists reports whether the object exists.
func (o *object) exists() bool { return o.was.GetResourceVersion() != "" }

// empty makes a configuration one without webhooks. One that this group has created should not exist then; one of an installation remains.
func (o *object) empty(by *Options) {
	if o.was.GetLabels()[label] == by.mark() {
		o.now = nil
		return
	}
	delete(o.now.Object, "webhooks")
}

// String formats the object for messages.
func (o *object) String() string { return fmt.Sprintf("%s[%s]", o.was.GetKind(), o.was.GetName()) }

// round compares all objects with what they should be, and writes those that differ. It starts again after a conflict, and without the
// webhooks that the API server has refused.
func (r *Registrar) round(ctx context.Context, sources []Source) (err error) {
	unknown := r.resolve(sources)
	conversions, failed := r.conversions(sources)
	for range maxAttempts {
		refused := len(r.refused)
		r.last.failed = maps.Clone(failed)
		err = r.attempt(ctx, sources, conversions, unknown == nil)
		r.last.general = err
		err = errors.Join(unknown, r.last.failed.err(), err)
		if len(r.refused) <= refused && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// attempt is one attempt of a round. conversions are by the name of the CRD. Unless everything is known about the controllers, only the
// bundles are written.
func (r *Registrar) attempt(ctx context.Context, sources []Source, conversions map[string]conversion, everything bool) error {
	began := time.Now()
	if err := r.publish(ctx, began); err != nil {
		return err
	}
	objects, err := r.read(ctx, conversions, began)
	if err != nil {
		return err
	}
	members, err := r.members(ctx, began)
	if err != nil {
		return err
	}
	bundle := r.bundle(objects, members, began)
	errs := []error{r.open(ctx, bundle)}
	if everything && !r.opened.IsZero() && !r.cfg.BundlesOnly {
		r.want(objects, sources, conversions)
	}
	var observed [][]byte
	var registered []string
	for _, o := range objects {
		if bundle != nil && o.was.GetAnnotations()[injected] != "" {
			errs = append(errs, fmt.Errorf("%s: cert-manager writes its caBundle: use its certificates, or remove the annotation %s", o, injected))
			continue
		}
		if o.now != nil {
			r.cfg.setBundle(o.now, bundle)
			if !r.cfg.BundlesOnly {
				r.cfg.fit(o, r.last.failed)
			}
		}
		if err := r.write(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, err))
		}
		if o.exists() {
			observed, registered = append(observed, r.cfg.bundles(o.was)...), append(registered, r.registered(o, conversions)...)
		}
	}
	r.observe(sources, registered, began)
	if a := r.cfg.Authority; a != nil {
		ended := time.Now()
		alone := len(observed) == 0 && !others(members, r.cfg.Replica, ended)
		if a.Observe(certs.Observation{Began: began, Ended: ended, Bundles: observed, Alone: alone}) {
			r.cfg.Logger.Info("a new webhook certificate is served")
			errs = append(errs, r.publish(ctx, ended))
		}
	}
	return errors.Join(errs...)
}

// publish writes the entry of this replica, if it has changed or is old.
func (r *Registrar) publish(ctx context.Context, now time.Time) error {
	m := member{Seen: now.UTC().Truncate(time.Second)}
	if a := r.cfg.Authority; a != nil {
		if _, err := a.Renew(now); err != nil {
			return err
		}
		m.Certificates = string(a.Published())
	}
	if age := m.Seen.Sub(r.published.Seen); m.Certificates == r.published.Certificates && age >= 0 && age < heartbeat {
		return nil
	}
	if err := r.record.publish(ctx, m); err != nil {
		return err
	}
	r.published = m
	return nil
}

// members reads the record, and removes entries that are of no use any more.
func (r *Registrar) members(ctx context.Context, now time.Time) (map[string]member, error) {
	members, err := r.record.read(ctx)
	if err != nil {
		return nil, err
	}
	if !members[r.cfg.Replica].equal(r.published) {
		r.published = member{}
		return nil, fmt.Errorf("ConfigMap[%s]: the entry of this replica was changed; it is written again", r.cfg.Name)
	}
	if list := gone(members, now); len(list) > 0 {
		return members, r.record.remove(ctx, list...)
	}
	return members, nil
}

// bundle returns the certificates that the API server must trust; nil if others write them.
func (r *Registrar) bundle(objects []*object, members map[string]member, now time.Time) []byte {
	if r.cfg.Authority == nil {
		return nil
	}
	var published, existing [][]byte
	for _, m := range members {
		published = append(published, []byte(m.Certificates))
	}
	for _, o := range objects {
		existing = append(existing, r.cfg.bundles(o.was)...)
	}
	return r.leftovers.Bundle(now, leave, published, existing)
}

// read reads the configurations, the CRDs that this group converts already, and those that it shall convert.
func (r *Registrar) read(ctx context.Context, conversions map[string]conversion, now time.Time) (objects []*object, err error) {
	for _, kind := range configurations {
		was, err := r.client.Resource(plural(kind)).Get(ctx, r.cfg.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			was, err = &unstructured.Unstructured{}, nil
			was.SetGroupVersionKind(kind)
			was.SetName(r.cfg.Name)
			was.SetLabels(map[string]string{label: r.cfg.mark()})
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%s]: %w", kind.Kind, r.cfg.Name, err)
		}
		objects = append(objects, &object{gvr: plural(kind), was: was, now: was.DeepCopy()})
	}
	list, err := r.client.Resource(crds).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + r.cfg.mark()})
	if err != nil && !apierrors.IsForbidden(err) { // without rights to CRDs, none was written
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	read := map[string]bool{}
	if err == nil {
		for i := range list.Items {
			read[list.Items[i].GetName()] = true
			objects = append(objects, &object{gvr: crds, was: &list.Items[i], now: list.Items[i].DeepCopy()})
		}
	}
	for name, c := range conversions {
		if read[name] {
			delete(r.absent, name)
			continue
		}
		was, err := r.client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = r.free(ctx, was, now)
		}
		if err != nil {
			r.last.failed[c.name] = fmt.Errorf("CustomResourceDefinition[%s]: %w", name, err)
			continue
		}
		objects = append(objects, &object{gvr: crds, was: was, now: was.DeepCopy()})
	}
	return objects, nil
}

// want sets what the objects should be. A CRD whose objects no controller converts any more is released, if all conversions are known.
func (r *Registrar) want(objects []*object, sources []Source, conversions map[string]conversion) {
	complete := len(r.last.failed) == 0 && time.Since(r.opened) >= settled
	hooks, failed := desired(sources, &r.cfg.Options, r.refused)
	maps.Copy(r.last.failed, failed)
	retain := r.retain(sources)
	for _, o := range objects {
		if o.gvr == crds {
			if c, ok := conversions[o.was.GetName()]; ok {
				o.now = r.cfg.convert(o.was, c.path)
			} else if complete {
				o.release()
			}
			continue
		}
		for t, kind := range configurations {
			if o.was.GetKind() == kind.Kind {
				o.now = r.cfg.merge(o.was, hooks[t], retain)
			}
		}
		if list, _ := o.now.Object["webhooks"].([]any); len(list) == 0 {
			o.empty(&r.cfg.Options)
		}
	}
}

// retain returns a function that reports whether a registered webhook that is not desired remains: this process has just started, and may not
// know its controller yet.
func (r *Registrar) retain(sources []Source) func(path string) bool {
	young := time.Since(r.opened) < settled
	for i := range sources {
		for j := range sources[i].Routes.Webhooks {
			if young {
				r.served[sources[i].Prefix+sources[i].Routes.Webhooks[j].Path] = true
			}
		}
	}
	return func(path string) bool { return young && !r.served[path] }
}
