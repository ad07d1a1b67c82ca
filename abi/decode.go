// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// awaiting is {action: "await"} as written by SDKs, which reserve a wide map head because they know the size last.
const awaiting = "\xde\x00\x01\xa6action\xa5await"

// DecodeResult decodes the output of reconcile, finalize or error_policy. An empty message means to wait for a change.
func DecodeResult(b []byte) (Result, error) {
	var res Result
	if len(b) == 0 || string(b) == awaiting { // the most frequent results; returning early avoids heap allocations for the closure
		return res, nil
	}
	var action string
	var d Declared
	var err error
	r := reader{b: b}
	res.Unknown, err = r.message(func(key string) (bool, error) {
		switch key {
		case keyAction:
			return r.string(&action)
		case keyAfterMS:
			return r.millis(&res.Action.After)
		case keyError:
			return r.resultError(&res.Error)
		}
		return r.declaredKey(key, &d)
	})
	if err == nil {
		err = res.setDeclared(&d)
	}
	if err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	return res, res.setAction(action)
}

func (res *Result) setAction(action string) error {
	switch {
	case res.Error != nil: // an error takes precedence over a requeue (rule 18)
		res.Action = Action{}
	case action == actionRequeue:
		res.Action.Requeue = true
	case action == actionAwait || action == "":
		res.Action = Action{}
	default:
		*res = Result{}
		return fmt.Errorf("result: %w: action %q is neither %q nor %q", ErrType, action, actionAwait, actionRequeue)
	}
	return nil
}

func (r *reader) resultError(dst **ResultError) (bool, error) {
	if r.null() {
		return true, nil
	}
	e := &ResultError{}
	*dst = e
	var class string
	_, err := r.eachKey(func(key string) (bool, error) {
		switch key {
		case keyClass:
			return r.string(&class)
		case keyMessage:
			return r.string(&e.Message)
		case keyReason:
			return r.string(&e.Reason)
		case keyAfterMS:
			return r.millis(&e.After)
		}
		return false, nil
	})
	switch e.Class = ErrorClass(class); e.Class {
	case ErrorPermanent, ErrorConflict:
	default:
		e.Class = ErrorTransient
	}
	return true, err
}

// DecodeManifest decodes and validates a manifest. unknown lists keys that this host does not know and ignored. A list that is too long is
// rejected before it is decoded.
func DecodeManifest(b []byte) (m *Manifest, unknown []string, err error) {
	m = &Manifest{}
	if err = checkBounds(b); err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	if unknown, err = decodeInto(b, m); err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	if err = m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	return m, unknown, nil
}

// EncodeManifest is the inverse of DecodeManifest. Equal manifests give equal bytes.
func EncodeManifest(m *Manifest) ([]byte, error) { return encode(m) }

// DecodeRequest decodes the request of an operation: an APIRequest, a ConfigRequest or an EventRequest. The server of the operation decides
// which keys are required and how long texts can be.
func DecodeRequest[T any](b []byte) (req T, unknown []string, err error) {
	unknown, err = decodeInto(b, &req)
	return req, unknown, err
}

// Refuse returns a response of the host itself: a negative status with its body.
func Refuse(s *StatusBody) Response {
	b, err := encode(s)
	if err != nil {
		panic("BUG: status body: " + err.Error()) // all its types can be encoded
	}
	return Response{Status: s.Code, Body: b}
}

func encode(v any) ([]byte, error) {
	var buf strings.Builder
	enc := msgpack.NewEncoder(&buf)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(buf.String()), nil
}

// decodeInto checks b and decodes it into the struct that v points to.
func decodeInto(b []byte, v any) (unknown []string, err error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	r := reader{b: b}
	known := fields(reflect.TypeOf(v).Elem())
	unknown, err = r.eachKey(func(key string) (bool, error) {
		if !slices.Contains(known, key) {
			return false, nil
		}
		return true, r.skip(1)
	})
	if err != nil {
		return nil, err
	}
	return unknown, msgpack.Unmarshal(b, v)
}

// fieldsOf caches the results of fields, by type.
var fieldsOf sync.Map

// fields lists the msgpack keys of a struct.
func fields(t reflect.Type) []string {
	if keys, ok := fieldsOf.Load(t); ok {
		return keys.([]string)
	}
	keys := make([]string, 0, t.NumField())
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		keys = append(keys, key)
	}
	fieldsOf.Store(t, keys)
	return keys
}
