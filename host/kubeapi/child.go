// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// child is a declared child, ready to be applied.
type child struct {
	ref    childRef
	digest digest
	// packed is the child in the guest's encoding.
	packed []byte
	// request is nil if the last apply was the same. If its proved is set, it is not sent either.
	request *request
}

// digest is the SHA-256 of the part of a declared result about one object.
type digest [sha256.Size]byte

// digestOf returns the digest of a child or a status of o, in the guest's encoding.
func (o *owner) digestOf(packed []byte, force bool) digest {
	o.hash.Reset()
	o.hash.Write(strconv.AppendBool(o.salt, force))
	o.hash.Write(packed)
	return digest(o.hash.Sum(o.sum[:0]))
}

// childRef identifies an object, independent of its version.
type childRef struct {
	schema.GroupResource

	key abi.Key
}

func (r *request) ref() childRef { return childRef{r.kind.GVR().GroupResource(), r.key} }

// prepare decodes and checks all children before the first one is sent, so that an invalid list
// changes nothing. Settled children were checked before. Errors are *WriteError.
func (a *API) prepare(ctx context.Context, o *owner, d *abi.Declared, settled map[digest]childRef) ([]child, error) {
	children := make([]child, 0, len(d.Apply))
	places := make(map[childRef]int, len(d.Apply))
	for i, packed := range d.Apply {
		c := child{digest: o.digestOf(packed, d.Force), packed: packed}
		var known bool
		if c.ref, known = settled[c.digest]; !known {
			r, err := a.prepareChild(ctx, o, packed, d.Force)
			if err != nil {
				return nil, a.writeError(ctx, StepApply, r, err).at(i)
			}
			c.ref, c.request = r.ref(), r
		}
		if first, twice := places[c.ref]; twice {
			about := &request{kind: kinds.Kind{Group: c.ref.Group, Resource: c.ref.Resource}, key: c.ref.key}
			return nil, a.writeError(ctx, StepApply, about, badf("it is the same object as child %d of the list: list each child once", first)).at(i)
		}
		places[c.ref] = i
		children = append(children, c)
	}
	return children, nil
}

// prepareChild checks one child. Even with an error, the request has the known parts of its kind
// and key.
func (a *API) prepareChild(ctx context.Context, o *owner, packed []byte, force bool) (*request, error) {
	r := &request{op: abi.OpAPIApply, ledger: &o.ledger, APIRequest: abi.APIRequest{Force: force}}
	err := checkValues(packed)
	if err != nil {
		return r, err
	}
	if r.head, err = readHead(packed, "child"); err != nil {
		return r, err
	}
	gvk, err := r.gvk()
	if err != nil {
		return r, err
	}
	r.kind = kinds.Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind} // for the error, in case the kind is unknown
	kind, err := a.cfg.Resolver.ResolveGVK(ctx, gvk)
	if err != nil {
		return r, err
	}
	r.kind = kind
	if err := r.locateChild(o); err != nil {
		return r, err
	}
	if denied := a.check(ctx, r, VerbPatch, VerbCreate); denied != nil {
		return r, denied
	}
	mark := r.ledger.mark()
	if err := r.ledger.takePacked(packed); err != nil {
		return r, err
	}
	if err := r.unpackChild(o, packed); err != nil {
		return r, err
	}
	r.owner = o.uid
	if err := a.confineDeclared(ctx, o, r); err != nil || r.pins != (pins{}) {
		return r, err
	}
	if r.proved = a.unchanged(o, r); r.proved != (version{}) {
		r.object = nil
		r.ledger.rewind(mark)
		return r, nil
	}
	if r.encoded, err = r.texts.AppendJSON(nil, r.object); err != nil {
		return r, badf("%v", err)
	}
	r.object = nil
	r.ledger.rewind(mark)
	return r, r.ledger.takeBytes(len(r.encoded) - (declaredCopies-1)*len(packed)) // the part that is longer than usual
}

// locateChild finds the child's key. Errors are badRequest.
func (r *request) locateChild(o *owner) error {
	r.key.Name = r.head.name
	switch {
	case r.head.generateName:
		return badf("metadata.generateName: a child needs the same name in every run: set metadata.name")
	case r.key.Name == "":
		return badf("metadata.name is needed")
	}
	if msgs := rest.IsValidPathSegmentName(r.key.Name); len(msgs) > 0 {
		return badf("metadata.name: %q %s", shorten(r.key.Name), msgs[0])
	}
	var err error
	if r.key.Namespace, err = o.place(r.kind, r.head.namespace); err != nil {
		return err
	}
	if msgs := rest.IsValidPathSegmentName(r.key.Namespace); len(msgs) > 0 {
		return badf("metadata.namespace: %q %s", shorten(r.key.Namespace), msgs[0])
	}
	if r.key == o.key && r.kind.GVK().GroupKind() == o.kind.GVK().GroupKind() {
		return badf("it is the reconciled object, which cannot own itself")
	}
	return nil
}

// unpackChild decodes a child, and adds namespace and owner reference. Errors are badRequest.
func (r *request) unpackChild(o *owner, packed []byte) error {
	var err error
	if r.object, err = abi.DecodeObject(packed); err != nil {
		return badf("%v", err)
	}
	if err := r.takeTexts(packed, "child"); err != nil {
		return err
	}
	meta, err := metadata(r.object, "child")
	if err != nil {
		return err
	}
	if r.key.Namespace != "" {
		meta["namespace"] = r.key.Namespace
	}
	delete(meta, "managedFields") // an object that the module has read has them, and an apply must not
	r.object["metadata"] = meta
	if r.kind.Group == "" && r.kind.Resource == "secrets" {
		foldStringData(r.object)
	}
	return o.own(meta)
}

// foldStringData moves the stringData of a Secret to its data, as the API server does when it stores the
// Secret. There, the applied field remains the one in stringData, so a key that is no longer declared
// would stay in data. A stringData that the API server would refuse stays unchanged.
func foldStringData(secret map[string]any) {
	texts, ok := secret["stringData"].(map[string]any)
	data, isMap := secret["data"].(map[string]any)
	if !ok || !isMap && secret["data"] != nil {
		return
	}
	folded := maps.Clone(data)
	if folded == nil {
		folded = make(map[string]any, len(texts))
	}
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return
		}
		folded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = folded
	delete(secret, "stringData")
}
