package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"

// Subresource is one subresource of one object: the scale of a Deployment, the
// eviction of a Pod. What is sent and answered may be of another kind than the
// object. For the status of an object Client has methods of its own.
//
//	scale := ctx.Client().Subresource(ref, "scale")
//	_, err := scale.Patch(wasmctl.MergePatch(wasmctl.Map{"spec": wasmctl.Map{"replicas": 3}}), wasmctl.WriteOptions{})
type Subresource struct {
	c    *Client
	ref  ObjectRef
	name string
}

// Subresource returns the way to a subresource of the object. The right that it
// needs is a Capability with Subresources.
func (c *Client) Subresource(ref ObjectRef, name string) Subresource {
	return Subresource{c: c, ref: ref, name: name}
}

// Get reads it.
func (s Subresource) Get() (Object, error) { return s.c.Get(s.ref, GetOptions{Subresource: s.name}) }

// Create sends body, an Eviction or a TokenRequest for example, and returns the
// answer.
func (s Subresource) Create(body any, opts WriteOptions) (Object, error) {
	return s.write(&imports.APICreate, body, ApplyOptions{WriteOptions: opts})
}

// Update replaces it and returns it as stored.
func (s Subresource) Update(body any, opts WriteOptions) (Object, error) {
	return s.write(&imports.APIUpdate, body, ApplyOptions{WriteOptions: opts})
}

// Apply makes the fields of body what they are there; see Client.Apply.
func (s Subresource) Apply(body any, opts ApplyOptions) (Object, error) {
	return s.write(&imports.APIApply, body, opts)
}

// Patch changes it and returns it as stored.
func (s Subresource) Patch(patch Patch, opts WriteOptions) (Object, error) {
	opts.Subresource = s.name
	return s.c.Patch(s.ref, patch, opts)
}

// write names the object beside the body, whose kind may be another.
func (s Subresource) write(op *imports.Op, body any, opts ApplyOptions) (Object, error) {
	b := begin(s.c.g, s.ref)
	if err := b.Value("object", body); err != nil {
		return Object{}, badValue(op, s.ref, err)
	}
	opts.Subresource = s.name
	opts.append(&b)
	b.Bool("force", opts.Force)
	return object(s.c.g, op, b.End(), s.ref)
}
