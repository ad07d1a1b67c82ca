// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// kind is the reconciled kind of the module, with a sample.
type kind struct {
	apiVersion, kind string
	sample           object
}

var key = abi.Key{Namespace: "default", Name: "sample"}

// findKind takes the kind from the manifest, and the sample from the objects of Options.
func (e *exam) findKind() error {
	e.kind = kind{apiVersion: "example.com/v1", kind: "Example"}
	if f := e.module.Manifest().For; f != nil {
		e.kind.kind = f.Kind
		e.kind.apiVersion = apiVersion(f.Group, f.Version)
	}
	e.kind.sample = e.bare()
	e.kind.sample["spec"] = object{}
	given, err := e.given()
	if err != nil {
		return err
	}
	defer func() { e.known = append(append(e.known, e.kind.sample), given...) }()
	if len(given) == 0 {
		return nil
	}
	if e.kind.sample, err = e.pick(given); err != nil {
		return err
	}
	meta, ok := e.kind.sample["metadata"].(object)
	if !ok || meta["name"] == nil {
		return errors.New("object: has no metadata.name")
	}
	for k, v := range identity() {
		if meta[k] == nil {
			meta[k] = v
		}
	}
	return nil
}

// given returns copies of the objects of Options, in which all integers are int64. CustomResourceDefinitions become random objects of their
// kinds.
func (e *exam) given() (out []object, err error) {
	f := e.module.Manifest().For
	for _, o := range e.opts.Objects {
		b, err := abi.AppendValue(nil, o)
		if err != nil {
			return nil, fmt.Errorf("object: %w", err)
		}
		plain, err := abi.DecodeObject(b)
		switch {
		case err != nil:
			return nil, fmt.Errorf("object: %w", err)
		case isCRD(plain) && (f == nil || f.Kind != plain["kind"]):
			e.schemas.add(plain)
			e.known = append(e.known, randomObjects(plain)...)
		default:
			out = append(out, plain)
		}
	}
	return out, nil
}

// pick returns the first object of the module's kind. If the kind is unknown, it returns the first
// object.
func (e *exam) pick(given []object) (object, error) {
	f := e.module.Manifest().For
	var kinds []string
	for _, o := range given {
		kind, _ := o["kind"].(string)
		if f == nil || kind == f.Kind {
			return o, nil
		}
		kinds = append(kinds, fmt.Sprintf("%q", kind))
	}
	return nil, fmt.Errorf("object: of %s none is a %q, which the module reconciles", strings.Join(kinds, ", "), f.Kind)
}

// apiVersion joins a group and a version, both of which may be empty.
func apiVersion(group, version string) string {
	if version == "" {
		version = "v1"
	}
	if group == "" {
		return version
	}
	return group + "/" + version
}

// bare returns an object with only the fields that the API server sets on every object.
func (e *exam) bare() object {
	return object{
		"apiVersion": e.kind.apiVersion, "kind": e.kind.kind,
		"metadata": identity(),
	}
}

// identity returns the metadata that the API server sets on every object.
func identity() object {
	return object{
		"name": key.Name, "namespace": key.Namespace, "uid": "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", "resourceVersion": "1",
		"generation": int64(1), "creationTimestamp": "2026-01-01T00:00:00Z",
	}
}

// with returns the sample with more metadata.
func (e *exam) with(more object) object {
	o := maps.Clone(e.kind.sample)
	meta := maps.Clone(o["metadata"].(object)) //nolint:forcetypeassert // findKind
	maps.Copy(meta, more)
	o["metadata"] = meta
	return o
}

// padded returns the sample with n additional bytes.
func (e *exam) padded(n int) object {
	return e.with(object{"annotations": object{"validate.wasmctl.dev/padding": strings.Repeat("p", n)}})
}

// inUnicode returns the sample with texts in many scripts.
func (e *exam) inUnicode() object {
	const words = "größe 中文 עברית ไทย 😀 e\u0301 \u2028"
	o := e.with(object{"annotations": object{"validate.wasmctl.dev/text": words}})
	o["spec"] = change(o["spec"], func(v any) any {
		if text, ok := v.(string); ok {
			return text + words
		}
		return v
	})
	return o
}

// ofOtherTypes returns the sample with values of other types, which no schema prevents.
func (e *exam) ofOtherTypes() object {
	o := e.with(nil)
	spec, ok := o["spec"].(object)
	if !ok || len(spec) == 0 {
		o["spec"] = []any{"a list", int64(1)}
		return o
	}
	o["spec"] = change(o["spec"], func(v any) any {
		switch v.(type) {
		case string:
			return int64(-1)
		case nil:
			return object{}
		}
		return "text"
	})
	return o
}

// change changes each value of a tree except maps and lists.
func change(v any, f func(any) any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, e := range v {
			out[k] = change(e, f)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = change(e, f)
		}
		return out
	}
	return f(v)
}
