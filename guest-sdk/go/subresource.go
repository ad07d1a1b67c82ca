// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"

// Subresource is a client of one subresource of one object: the scale of a
// Deployment, or the eviction of a Pod. The request and the answer may be of
// another kind than the object. For the status of an object, use the methods of
// Client.
//
//	scale := ctx.Client().Subresource(ref, "scale")
//	_, err := scale.Patch(wasmctl.MergePatch(wasmctl.Map{"spec": wasmctl.Map{"replicas": 3}}), wasmctl.WriteOptions{})
type Subresource struct {
	c    *Client
	ref  ObjectRef
	name string
}

// Subresource returns a client of a subresource of the object. It needs a
// Capability with Subresources.
func (c *Client) Subresource(ref ObjectRef, name string) Subresource {
	return Subresource{c: c, ref: ref, name: name}
}

// Get reads the subresource.
func (s Subresource) Get() (Object, error) { return s.c.Get(s.ref, GetOptions{Subresource: s.name}) }

// Create sends body, for example an Eviction or a TokenRequest, and returns the
// answer.
func (s Subresource) Create(body any, opts WriteOptions) (Object, error) {
	return s.write(&imports.APICreate, body, ApplyOptions{WriteOptions: opts})
}

// Update replaces the subresource and returns the stored one.
func (s Subresource) Update(body any, opts WriteOptions) (Object, error) {
	return s.write(&imports.APIUpdate, body, ApplyOptions{WriteOptions: opts})
}

// Apply applies the fields of body by server-side apply; see Client.Apply.
func (s Subresource) Apply(body any, opts ApplyOptions) (Object, error) {
	return s.write(&imports.APIApply, body, opts)
}

// Patch changes the subresource and returns the stored one.
func (s Subresource) Patch(patch Patch, opts WriteOptions) (Object, error) {
	opts.Subresource = s.name
	return s.c.Patch(s.ref, patch, opts)
}

func (s Subresource) write(op *imports.Op, body any, opts ApplyOptions) (Object, error) {
	opts.Subresource = s.name
	return s.c.write(op, s.ref, body, opts)
}
