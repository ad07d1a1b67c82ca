// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"

	kjson "sigs.k8s.io/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// refusal is an error with an HTTP status. For the API server it is a failed call, to which the failure policy applies.
type refusal struct {
	code int
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, text.Truncate(fmt.Sprintf(format, args...), maxText)}
}

// maxText is the maximum length of a message in bytes.
const maxText = 4 << 10

// review is an AdmissionReview or a ConversionReview of which the version is known.
type review struct {
	apiVersion, kind string
	// request is the msgpack of its request: a map with sorted keys.
	request []byte
}

var transcoders = sync.Pool{New: func() any { return &transcode.Transcoder{} }}

// Bounds of a body for which a transcoder is used again. Others would leave large buffers.
const (
	maxScratch = 1 << 20 // bytes
	maxKeys    = 1 << 14
)

// copies is about the memory that a decoded value takes while it is built, compared and encoded, as a multiple of its size.
const copies = 2

// pack appends the msgpack of a body, which is JSON from anybody. A key that appears twice is an error. take reserves memory.
func pack(dst, body []byte, take func(int64) error) ([]byte, error) {
	var out []byte
	var ok bool
	if keys := bytes.Count(body, []byte(":")); len(body) <= maxScratch && keys <= maxKeys {
		t := transcoders.Get().(*transcode.Transcoder)
		out, ok = t.Append(dst, body)
		transcoders.Put(t)
	} else {
		if err := take(int64(keys*transcode.KeyBytes + len(body))); err != nil {
			return nil, err
		}
		out, ok = transcode.Sized(keys, len(body)).Append(dst, body)
	}
	if ok {
		return out, nil
	}
	if err := take(copies * packed.MeasureJSON(body)); err != nil {
		return nil, err
	}
	var v map[string]any
	strict, err := kjson.UnmarshalStrict(body, &v, kjson.DisallowDuplicateFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err == nil {
		out, err = abi.AppendValue(dst, v)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not an object in JSON: %v", err)
	}
	return out, nil
}

// readReview reads the part that both kinds of review have.
func readReview(b []byte, kind string, apiVersions ...string) (review, error) {
	f := fields{b: b}
	r := review{apiVersion: f.text("apiVersion"), kind: f.text("kind"), request: f.object("request")}
	switch {
	case f.err != nil:
		return r, f.err
	case r.kind != kind || !slices.Contains(apiVersions, r.apiVersion):
		return r, refuse(http.StatusBadRequest, "the body is %q %q, want %s of %q", text.Shorten(r.apiVersion, 100), text.Shorten(r.kind, 100), kind, apiVersions)
	case r.request == nil:
		return r, refuse(http.StatusBadRequest, "the %s has no request", kind)
	}
	return r, nil
}

// fields reads the values of a map in msgpack that has sorted keys. The first value of an unexpected type sets err.
type fields struct {
	b    []byte
	path string
	err  error
}

// find returns the value of a key, or nil if it is absent or null.
func (f *fields) find(key string, want packed.Form) []byte {
	v := packed.Find(f.b, key)
	if packed.IsNil(v) {
		return nil
	}
	if packed.FormOf(v) != want && f.err == nil {
		f.err = refuse(http.StatusBadRequest, "%s%s: has an unexpected type", f.path, key)
	}
	if f.err != nil {
		return nil
	}
	return v
}

func (f *fields) text(key string) string { return textOf(f.find(key, packed.Text)) }

func (f *fields) object(key string) []byte { return f.find(key, packed.Map) }

func (f *fields) flag(key string) bool {
	v := f.find(key, packed.Scalar)
	if v != nil && v[0] != 0xc2 && v[0] != 0xc3 {
		f.err = refuse(http.StatusBadRequest, "%s%s: is not a bool", f.path, key)
	}
	return v != nil && v[0] == 0xc3
}

func (f *fields) texts(key string) []string { return f.textsOf(key, packed.Find(f.b, key)) }

// textsOf reads a list of texts, which is within the value of a key.
func (f *fields) textsOf(key string, v []byte) []string {
	if packed.IsNil(v) {
		return nil
	}
	c := packed.At(v)
	list := make([]string, c.ArrayLen())
	for i := range list {
		list[i] = string(c.Text())
	}
	if !c.OK() && f.err == nil {
		f.err = refuse(http.StatusBadRequest, "%s%s: is not a list of texts", f.path, key)
	}
	return list
}

// within returns the fields of a map that may be absent.
func (f *fields) within(key string) *fields {
	return &fields{b: f.object(key), path: f.path + key + "."}
}

// join takes over the error of other fields.
func (f *fields) join(other *fields) {
	if f.err == nil {
		f.err = other.err
	}
}

func textOf(v []byte) string {
	c := packed.At(v)
	return string(c.Text())
}

// withoutManagedFields returns an object without metadata.managedFields. It is a copy if it has some.
func withoutManagedFields(object []byte) []byte {
	meta := packed.Find(object, "metadata")
	if packed.Find(meta, "managedFields") == nil {
		return object
	}
	return edited(object, func(key, value []byte) []byte {
		if string(key) != "metadata" {
			return value
		}
		return edited(value, func(key, value []byte) []byte {
			if string(key) == "managedFields" {
				return nil
			}
			return value
		})
	})
}

// entry is an entry of a map in msgpack.
type entry struct {
	key   string
	value []byte
}

// edited returns a copy of a map in msgpack with the values that change returns, and more entries at its end. An entry of which the new
// value is nil is left out.
func edited(m []byte, change func(key, value []byte) []byte, more ...entry) []byte {
	const room = 5 // for the head
	c := packed.At(m)
	out, n := make([]byte, room, room+len(m)), 0
	for range c.MapLen() {
		from := c.Rest()
		key := c.Text()
		start := from[:len(from)-len(c.Rest())]
		if value := change(key, c.Value()); value != nil {
			out = append(append(out, start...), value...)
			n++
		}
	}
	for _, e := range more {
		if e.value != nil {
			out = append(append(abi.AppendTextHead(out, len(e.key)), e.key...), e.value...)
			n++
		}
	}
	head := abi.AppendMapHead(nil, n)
	begin := room - len(head)
	copy(out[begin:], head)
	return out[begin:]
}
