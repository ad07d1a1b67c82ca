// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strings"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Conversion converts the objects of a kind between the versions of its
// CustomResourceDefinition. It needs the right to convert in the operator's
// grant.
type Conversion struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Versions are all versions that Convert knows.
	Versions []string `json:"versions,omitempty"`
	// Convert returns the object in the version to, which is an apiVersion,
	// "example.com/v2". It is not called for an object that has this version
	// already. The result is a *Builder, a Map, a struct or an Object, with to
	// as its apiVersion. A conversion must not lose anything: convert fields
	// that a version lacks into annotations. From the metadata of the result,
	// the API server takes only labels and annotations. An error fails the
	// client's request. Convert may use only the settings and the log of ctx,
	// which has no object.
	Convert func(ctx *Context, obj Object, to string) (any, error) `json:"-"`
}

var errNoConversion = errors.New("module: no conversion of this kind")

// convert runs the entry call convert: {objects} or {error}.
func (g *guest) convert(dst []byte) []byte {
	to := Value{g.ctx.in.judged.to}.String()
	objects := Value{g.ctx.in.judged.objects}
	out := wire.AppendString(wire.AppendMap(dst, 1), "objects")
	out = wire.AppendArray(out, objects.Len())
	var err error
	for _, v := range objects.Elements() {
		obj := Object{Value: v}
		if out, err = g.converted(out, obj, to); err != nil {
			return appendFailed(dst, &conversionError{obj.Ref(), err})
		}
	}
	if len(out)-len(dst) > wire.MaxBytes {
		return appendFailed(dst, WithReason(Permanent(wire.ErrTooLarge), "BadResult"))
	}
	return out
}

// conversionError names the object that cannot be converted.
type conversionError struct {
	object ObjectRef
	err    error
}

func (e *conversionError) Error() string { return e.object.String() + ": " + e.err.Error() }

func (e *conversionError) Unwrap() error { return e.err }

// converted appends an object in the version to.
func (g *guest) converted(dst []byte, obj Object, to string) ([]byte, error) {
	version := obj.APIVersion()
	if version == to {
		return obj.AppendMsgpack(dst)
	}
	group, _, _ := strings.Cut(version, "/")
	kind := obj.Kind()
	for i := range g.reconciler.Manifest.Conversions {
		c := &g.reconciler.Manifest.Conversions[i]
		if c.Group != group || c.Kind != kind {
			continue
		}
		res, err := c.Convert(&g.ctx, obj, to)
		if err != nil {
			return dst, err
		}
		return wire.Append(dst, res)
	}
	return dst, Permanent(errNoConversion)
}
