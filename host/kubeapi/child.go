package kubeapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

// child is a declared child, ready to be applied.
type child struct {
	request *request
	// digest is that of what would be sent.
	digest digest
}

// digest is the SHA-256 of an apply request.
type digest [sha256.Size]byte

// digestOf returns the digest of the body of an apply and of its force.
func digestOf(body []byte, force bool) digest {
	h := sha256.New()
	h.Write(body)
	if force {
		h.Write([]byte("force"))
	}
	return digest(h.Sum(nil))
}

// childRef names an object whatever version of its kind is meant.
type childRef struct {
	schema.GroupResource

	key abi.Key
}

func (c *child) ref() childRef { return childRef{c.request.kind.GVR().GroupResource(), c.request.key} }

// prepare reads and checks all children before the first one is sent: a list
// that cannot be right changes nothing. Errors are *WriteError.
func (a *API) prepare(ctx context.Context, o *owner, d *abi.Declared) ([]child, error) {
	children := make([]child, 0, len(d.Apply))
	places := make(map[childRef]int, len(d.Apply))
	for i, packed := range d.Apply {
		c, err := a.prepareChild(ctx, o, packed, d.Force)
		if err != nil {
			return nil, a.writeError(ctx, StepApply, c.request, err).at(i)
		}
		if first, twice := places[c.ref()]; twice {
			return nil, a.writeError(ctx, StepApply, c.request, badf("it is the same object as that at place %d of the list: list each child once", first)).at(i)
		}
		places[c.ref()] = i
		children = append(children, c)
	}
	return children, nil
}

// prepareChild checks one child. With an error too the child's request says
// what is known of its kind and key.
func (a *API) prepareChild(ctx context.Context, o *owner, packed []byte, force bool) (child, error) {
	r := &request{op: abi.OpAPIApply, APIRequest: abi.APIRequest{Force: force}}
	c := child{request: r}
	var err error
	if r.object, err = abi.DecodeObject(packed); err != nil {
		return c, badf("%v", err)
	}
	gvk, err := r.gvk()
	if err != nil {
		return c, err
	}
	r.kind = Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind} // for the error, should it be unknown
	kind, err := a.resolver.ResolveGVK(ctx, gvk)
	if err != nil {
		return c, err
	}
	r.kind = kind
	if err := c.locate(o); err != nil {
		return c, err
	}
	if denied := a.policy.check(r.attributes(), VerbPatch, VerbCreate); denied != nil {
		return c, denied
	}
	if r.encoded, err = json.Marshal(r.object); err != nil {
		return c, badf("%v", err)
	}
	r.object = nil
	c.digest = digestOf(r.encoded, force)
	return c, nil
}

// locate finds the child's key and writes namespace and owner reference into
// it. Errors are a badRequest.
func (c *child) locate(o *owner) error {
	r := c.request
	meta, err := metadata(r.object, "child")
	if err != nil {
		return err
	}
	if r.key.Name, err = stringAt(meta, "name", "metadata"); err != nil {
		return err
	}
	switch {
	case meta["generateName"] != nil:
		return badf("metadata.generateName: a child needs a name that stays the same from run to run: give it a name")
	case r.key.Name == "":
		return badf("metadata.name is needed")
	}
	if msgs := rest.IsValidPathSegmentName(r.key.Name); len(msgs) > 0 {
		return badf("metadata.name: %q %s", shorten(r.key.Name), msgs[0])
	}
	namespace, err := stringAt(meta, "namespace", "metadata")
	if err != nil {
		return err
	}
	if r.key.Namespace, err = o.place(r.kind, namespace); err != nil {
		return err
	}
	if msgs := rest.IsValidPathSegmentName(r.key.Namespace); len(msgs) > 0 {
		return badf("metadata.namespace: %q %s", shorten(r.key.Namespace), msgs[0])
	}
	if r.key == o.key && r.kind.GVK().GroupKind() == o.kind.GVK().GroupKind() {
		return badf("it is the reconciled object itself, which cannot own itself")
	}
	if r.key.Namespace != "" {
		meta["namespace"] = r.key.Namespace
	}
	r.object["metadata"] = meta
	return o.own(meta)
}
