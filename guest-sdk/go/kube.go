// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"unsafe"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Client calls the Kubernetes API through the host, within the capabilities of
// the module's manifest. Its results are copies that stay valid.
//
// Every error of a call is an *Error; see IsNotFound and the others. If an
// object cannot be encoded, the error has another type and the Client makes no
// call.
//
// A namespaced object needs a namespace. There is no default namespace: the
// host returns an error.
type Client struct {
	g *guest
}

// Get reads an object from the API server.
func (c *Client) Get(ref ObjectRef, opts GetOptions) (Object, error) {
	b := begin(c.g, ref)
	b.String("subresource", opts.Subresource)
	b.String("resourceVersion", opts.ResourceVersion)
	return object(c.g, &imports.APIGet, b.End(), ref)
}

// List reads the objects of ref's kind in ref's namespace, or in all namespaces
// if ref has none. If opts.Limit is set, it reads one page. ref must have no
// name.
func (c *Client) List(ref ObjectRef, opts ListOptions) (List, error) {
	if ref.Name != "" {
		return List{}, errors.New("api_list " + ref.String() + ": a list has no name; use Get or a field selector")
	}
	b := begin(c.g, ref)
	b.String("labelSelector", opts.LabelSelector)
	b.String("fieldSelector", opts.FieldSelector)
	b.Int("limit", opts.Limit)
	b.String("continue", opts.Continue)
	b.String("resourceVersion", opts.ResourceVersion)
	b.String("resourceVersionMatch", opts.ResourceVersionMatch)
	o, err := object(c.g, &imports.APIList, b.End(), ref)
	return List{o.Value}, err
}

// All iterates over the objects that List returns, page by page, with
// opts.Limit objects in each page (500 if it is not set). An error ends the
// iteration. If IsGone is true for the error, the iteration took too long and
// must start again.
//
//	for obj, err := range ctx.Client().All(ref, wasmctl.ListOptions{}) {
func (c *Client) All(ref ObjectRef, opts ListOptions) func(yield func(Object, error) bool) {
	if opts.Limit <= 0 {
		opts.Limit = 500 // a page of some hundred kilobytes for objects of usual size
	}
	return pages(func(next string) (List, error) {
		if next != "" { // the continue token fixes the version of all later pages
			opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = next, "", ""
		}
		return c.List(ref, opts)
	})
}

// Create creates object and returns the stored object.
func (c *Client) Create(object any, opts WriteOptions) (Object, error) {
	return c.write(&imports.APICreate, ObjectRef{}, object, ApplyOptions{WriteOptions: opts})
}

// Update replaces object and returns the stored object. If the metadata has a
// resourceVersion and the object has changed since that version, the answer is
// a conflict. Most controllers should use Apply or Patch.
func (c *Client) Update(object any, opts WriteOptions) (Object, error) {
	return c.write(&imports.APIUpdate, ObjectRef{}, object, ApplyOptions{WriteOptions: opts})
}

// UpdateStatus is Update of the status subresource.
func (c *Client) UpdateStatus(object any, opts WriteOptions) (Object, error) {
	opts.Subresource = "status"
	return c.Update(object, opts)
}

// Apply applies the fields of object by server-side apply, and returns the
// stored object. It creates a missing object. It does not change fields that
// object does not have, except that it removes fields that this manager applied
// before and that object no longer has.
func (c *Client) Apply(object any, opts ApplyOptions) (Object, error) {
	return c.write(&imports.APIApply, ObjectRef{}, object, opts)
}

// ApplyStatus is Apply of the status subresource. object must have apiVersion,
// kind, metadata with name and namespace, and status.
func (c *Client) ApplyStatus(object any, opts ApplyOptions) (Object, error) {
	opts.Subresource = "status"
	return c.Apply(object, opts)
}

// Patch changes an object and returns the stored object.
func (c *Client) Patch(ref ObjectRef, patch Patch, opts WriteOptions) (Object, error) {
	b := begin(c.g, ref)
	b.String("patchType", patch.kind)
	if err := b.Value("patch", patch.body); err != nil {
		return Object{}, badValue(&imports.APIPatch, ref, err)
	}
	opts.append(&b)
	return object(c.g, &imports.APIPatch, b.End(), ref)
}

// PatchStatus is Patch of the status subresource.
func (c *Client) PatchStatus(ref ObjectRef, patch Patch, opts WriteOptions) (Object, error) {
	opts.Subresource = "status"
	return c.Patch(ref, patch, opts)
}

// Delete deletes an object. Its finalizers may delay that. If the object does
// not exist, IsNotFound is true for the error.
func (c *Client) Delete(ref ObjectRef, opts DeleteOptions) error {
	b := begin(c.g, ref)
	b.Bool("dryRun", opts.DryRun)
	b.String("propagationPolicy", opts.PropagationPolicy)
	if opts.GracePeriodSeconds != nil {
		b.Raw("gracePeriodSeconds", wire.AppendInt(nil, *opts.GracePeriodSeconds))
	}
	opts.Preconditions.append(&b)
	c.g.request = b.End()
	_, err := c.g.do(&imports.APIDelete, c.g.request)
	return at(err, ref)
}

// begin starts a request in the memory of the previous request.
func begin(g *guest, ref ObjectRef) wire.Builder {
	b := wire.NewBuilder(g.request[:0])
	appendRef(&b, ref)
	return b
}

func appendRef(b *wire.Builder, ref ObjectRef) {
	b.String("apiVersion", ref.APIVersion)
	b.String("kind", ref.Kind)
	b.String("namespace", ref.Namespace)
	b.String("name", ref.Name)
}

// write sends body. If ref is empty, the body names the object. Otherwise ref
// is the object of a subresource, whose body may be of another kind.
func (c *Client) write(op *imports.Op, ref ObjectRef, body any, opts ApplyOptions) (Object, error) {
	b := begin(c.g, ref)
	if err := b.Value("object", body); err != nil {
		return Object{}, badValue(op, ref, err)
	}
	opts.append(&b)
	b.Bool("force", opts.Force)
	req := b.End()
	o, err := object(c.g, op, req, ref)
	if err != nil && ref == (ObjectRef{}) {
		return o, at(err, Object{Value: Value{req}.At("object")}.Ref())
	}
	return o, err
}

// object runs an operation that answers an object. It copies the object,
// because the next operation reuses the memory of the answer.
func object(g *guest, op *imports.Op, req []byte, ref ObjectRef) (Object, error) {
	g.request = req
	body, err := g.do(op, req)
	if err != nil {
		return Object{}, at(err, ref)
	}
	body = append([]byte(nil), body...)
	return Object{Value: Value{body}, kept: unsafe.SliceData(body)}, nil
}

// at adds the object's name to an *Error.
func at(err error, ref ObjectRef) error {
	if e, ok := as[*Error](err); ok {
		e.Ref = ref
	}
	return err
}

func badValue(op *imports.Op, ref ObjectRef, err error) error {
	what := op.Name
	if ref.Kind != "" {
		what += " " + ref.String()
	}
	return &located{what + ": encode", err}
}

// located is an error with its place.
type located struct {
	what string
	err  error
}

func (e *located) Error() string { return e.what + ": " + e.err.Error() }

func (e *located) Unwrap() error { return e.err }
