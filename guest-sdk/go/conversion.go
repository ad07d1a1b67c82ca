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
	n, _ := wire.Len(g.ctx.in.judged.objects)
	out := wire.AppendArray(wire.AppendString(wire.AppendMap(dst, 1), "objects"), max(n, 0))
	var err error
	for it := wire.Walk(g.ctx.in.judged.objects); err == nil && it.Next(); {
		out, err = g.converted(out, Object{Value: Value{it.Value}}, to)
	}
	return g.bounded(dst, out, err)
}

// bounded returns out, which starts with dst, or an error of the call.
func (g *guest) bounded(dst, out []byte, err error) []byte {
	if err == nil && len(out)-len(dst) > wire.MaxBytes {
		err = WithReason(Permanent(wire.ErrTooLarge), "BadResult")
	}
	if err != nil {
		return appendFailed(dst, err)
	}
	return out
}

// converted appends an object in the version to.
func (g *guest) converted(dst []byte, obj Object, to string) ([]byte, error) {
	version := obj.APIVersion()
	if version == to {
		return obj.AppendMsgpack(dst)
	}
	group, _, _ := strings.Cut(version, "/")
	err := Permanent(errNoConversion)
	for i := range g.reconciler.Manifest.Conversions {
		if c := &g.reconciler.Manifest.Conversions[i]; c.Group == group && c.Kind == obj.Kind() {
			var res any
			if res, err = c.Convert(&g.ctx, obj, to); err == nil {
				dst, err = wire.Append(dst, res)
			}
			break
		}
	}
	if err != nil {
		err = &located{obj.Ref().String(), err}
	}
	return dst, err
}
