package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Client calls the Kubernetes API through the host, within the capabilities of
// the module's manifest. What it returns are copies that stay good.
//
// Every error of a call is an *Error; see IsNotFound and the others. An object
// that cannot be written as msgpack is another error, and no call is made.
//
// A namespaced object without a namespace is an error of the host: there is no
// default namespace.
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

// List reads the objects of ref's kind in ref's namespace, or in all where it
// has none: one page of them where opts.Limit is set. ref has no name.
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

// All walks the objects that List returns, page by page: opts.Limit at a time,
// 500 if it is not set. An error ends the walk; one for which IsGone is true
// means that the walk took too long, and is to start again.
//
//	for obj, err := range ctx.Client().All(ref, wasmctl.ListOptions{}) {
func (c *Client) All(ref ObjectRef, opts ListOptions) func(yield func(Object, error) bool) {
	if opts.Limit <= 0 {
		opts.Limit = 500 // some hundreds of kilobytes of objects of the usual size
	}
	return pages(func(next string) (List, error) {
		if next != "" { // the first page says for all of them which state it is
			opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = next, "", ""
		}
		return c.List(ref, opts)
	})
}

// Create creates object and returns it as stored.
func (c *Client) Create(object any, opts WriteOptions) (Object, error) {
	return c.write(&imports.APICreate, object, opts, false)
}

// Update replaces object and returns it as stored. With a resourceVersion in
// its metadata it answers a conflict if somebody wrote since that was read.
// Most controllers want Apply or Patch.
func (c *Client) Update(object any, opts WriteOptions) (Object, error) {
	return c.write(&imports.APIUpdate, object, opts, false)
}

// UpdateStatus is Update of the status subresource.
func (c *Client) UpdateStatus(object any, opts WriteOptions) (Object, error) {
	opts.Subresource = "status"
	return c.Update(object, opts)
}

// Apply makes the fields of object what they are there, by server-side apply,
// and returns the object as stored. It creates an object that is missing,
// leaves alone the fields that object does not have, and removes those that
// this manager applied before and are not there any more.
func (c *Client) Apply(object any, opts ApplyOptions) (Object, error) {
	return c.write(&imports.APIApply, object, opts.WriteOptions, opts.Force)
}

// ApplyStatus is Apply of the status subresource. object has apiVersion, kind,
// metadata with name and namespace, and status.
func (c *Client) ApplyStatus(object any, opts ApplyOptions) (Object, error) {
	opts.Subresource = "status"
	return c.Apply(object, opts)
}

// Patch changes an object and returns it as stored.
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

// Delete asks for an object to be deleted. Finalizers may hold it after that.
// An object that is gone already answers an error for which IsNotFound is true.
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

// begin starts a request in the memory of the last one.
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

func (c *Client) write(op *imports.Op, body any, opts WriteOptions, force bool) (Object, error) {
	b := wire.NewBuilder(c.g.request[:0])
	if err := b.Value("object", body); err != nil {
		return Object{}, badValue(op, ObjectRef{}, err)
	}
	opts.append(&b)
	b.Bool("force", force)
	req := b.End()
	o, err := object(c.g, op, req, ObjectRef{})
	if err != nil {
		return o, at(err, Object{Value: Value{req}.At("object")}.Ref())
	}
	return o, nil
}

// object carries out an operation that answers an object, and copies it out of
// the memory that the next operation uses again.
func object(g *guest, op *imports.Op, req []byte, ref ObjectRef) (Object, error) {
	g.request = req
	body, err := g.do(op, req)
	if err != nil {
		return Object{}, at(err, ref)
	}
	return Object{Value: Value{append([]byte(nil), body...)}}, nil
}

// at puts the object's name into an *Error.
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
	return &encodeError{what, err}
}

// encodeError says which value of a request cannot be sent.
type encodeError struct {
	what string
	err  error
}

func (e *encodeError) Error() string { return e.what + ": encode: " + e.err.Error() }

func (e *encodeError) Unwrap() error { return e.err }
