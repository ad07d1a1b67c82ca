// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/failure"
)

// target is the object of a call with the SDK's client for it.
type target struct {
	c   *wasmctl.Client
	gvk schema.GroupVersionKind
	obj Object
}

// aim prepares a call for obj.
func (h *host) aim(ctx context.Context, obj Object) (target, error) {
	gvk, err := h.GroupVersionKindFor(obj)
	if err != nil {
		return target{}, err
	}
	c, err := h.caller(ctx)
	return target{c, gvk, obj}, err
}

func (t target) ref() wasmctl.ObjectRef {
	return codec.RefTo(t.gvk, t.obj.GetNamespace(), t.obj.GetName())
}

// take decodes the answer of the API server into the object.
func (t target) take(got wasmctl.Object, err error) error {
	if err != nil {
		return failure.FromHost(err)
	}
	return into(got, t.obj, t.gvk)
}

// send sends the object and decodes the answer into it.
func (t target) send(verb string, call func(body any) (wasmctl.Object, error)) error {
	if _, ok := t.obj.(*metav1.PartialObjectMetadata); ok {
		return fmt.Errorf("client: cannot %s %s from its metadata alone; patch it, or use its whole type", verb, t.ref())
	}
	body, restore := codec.Body(t.obj, t.gvk)
	got, err := call(body)
	restore()
	return t.take(got, err)
}

// Create implements Writer.
func (h *host) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	t, err := h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	err = t.send("create", func(body any) (wasmctl.Object, error) {
		return t.c.Create(body, writeOptions("", o.DryRun, o.FieldManager, o.FieldValidation))
	})
	return failure.NoMatch(err, t.gvk)
}

// keepKind returns a function that restores the current kind of obj. Update and
// Patch of the real client preserve the kind, but Create does not; the real
// fake does not preserve it.
func (h *host) keepKind(obj Object) (restore func()) {
	said := obj.GetObjectKind().GroupVersionKind()
	return func() {
		if !said.Empty() && h.call == nil {
			obj.GetObjectKind().SetGroupVersionKind(said)
		}
	}
}

// Update implements Writer.
func (h *host) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	defer h.keepKind(obj)()
	t, err := h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	err = t.send("update", func(body any) (wasmctl.Object, error) {
		return t.c.Update(body, writeOptions("", o.DryRun, o.FieldManager, o.FieldValidation))
	})
	return failure.NoMatch(err, t.gvk)
}

// Patch implements Writer.
func (h *host) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	defer h.keepKind(obj)()
	t, err := h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	return failure.NoMatch(t.patch("", obj, patch, o), t.gvk)
}

// Apply implements Writer.
func (h *host) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	c, err := h.caller(ctx)
	if err != nil {
		return err
	}
	o := (&ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	return applied(obj)(c.Apply(codec.Plain(unwrap(obj)), applyOptions("", o)))
}

// unwrap returns the value of an apply configuration to encode.
func unwrap(obj runtime.ApplyConfiguration) any {
	if u, ok := obj.(*unstructuredApply); ok {
		return u.Unstructured
	}
	return obj
}

// applied returns a function that decodes the answer of the API server into an
// apply configuration.
func applied(obj runtime.ApplyConfiguration) func(got wasmctl.Object, err error) error {
	return func(got wasmctl.Object, err error) error {
		if err != nil {
			return failure.FromHost(err)
		}
		return codec.Decode(got, unwrap(obj))
	}
}

// Delete implements Writer.
func (h *host) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	t, err := h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions()
	return failure.NoMatch(failure.FromHost(t.c.Delete(t.ref(), deleteOptions(o))), t.gvk)
}

// DeleteAllOf implements Writer with a list and a deletion of each object.
// Objects that are created in the meantime may remain, as with the API server.
func (h *host) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	t, err := h.aim(ctx, obj)
	if err != nil {
		return err
	}
	o := (&DeleteAllOfOptions{}).ApplyOptions(opts)
	if o.selectsNothing() {
		return nil
	}
	l := o.AsListOptions()
	ask := wasmctl.ListOptions{LabelSelector: l.LabelSelector, FieldSelector: l.FieldSelector, Limit: l.Limit}
	var refs []wasmctl.ObjectRef
	for found, err := range t.c.All(codec.RefTo(t.gvk, o.Namespace, ""), ask) {
		if err != nil {
			return failure.NoMatch(failure.FromHost(err), t.gvk)
		}
		refs = append(refs, codec.RefTo(t.gvk, found.Namespace(), found.Name()))
	}
	del := deleteOptions(o.AsDeleteOptions())
	var all []error
	for _, ref := range refs {
		if err := t.c.Delete(ref, del); !wasmctl.IsNotFound(err) {
			all = append(all, failure.FromHost(err))
		}
	}
	return errors.Join(all...)
}

func writeOptions(sub string, dryRun []string, manager, validation string) wasmctl.WriteOptions {
	return wasmctl.WriteOptions{Subresource: sub, DryRun: isDry(dryRun), FieldManager: manager, FieldValidation: validation}
}

func applyOptions(sub string, o *metav1.PatchOptions) wasmctl.ApplyOptions {
	return wasmctl.ApplyOptions{
		WriteOptions: writeOptions(sub, o.DryRun, o.FieldManager, o.FieldValidation),
		Force:        o.Force != nil && *o.Force,
	}
}

func deleteOptions(o *metav1.DeleteOptions) wasmctl.DeleteOptions {
	d := wasmctl.DeleteOptions{DryRun: isDry(o.DryRun), GracePeriodSeconds: o.GracePeriodSeconds}
	if o.PropagationPolicy != nil {
		d.PropagationPolicy = string(*o.PropagationPolicy)
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil {
			d.Preconditions.UID = string(*p.UID)
		}
		if p.ResourceVersion != nil {
			d.Preconditions.ResourceVersion = *p.ResourceVersion
		}
	}
	return d
}

func isDry(list []string) bool { return slices.Contains(list, metav1.DryRunAll) }
