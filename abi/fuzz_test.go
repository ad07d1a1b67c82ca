// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"k8s.io/apimachinery/pkg/runtime"
)

func seed(f *testing.F) {
	f.Helper()
	for _, g := range goldenMessages() {
		f.Add(g.msg)
	}
	f.Add(opaqueObject(`{"a":[1.0,{"b":null}]}`))
}

// FuzzDecodeValue: an accepted value is safe for DeepCopyJSON and for JSON, is accepted by Check and by the library,
// and can be encoded to bytes that decode to the same value.
func FuzzDecodeValue(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeValue(b)
		if err != nil {
			return
		}
		if err := Check(b); err != nil {
			t.Errorf("decoded, but Check says %v", err)
		}
		runtime.DeepCopyJSONValue(v)
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
		var lib any
		if texts, _ := OpaqueTexts(b); texts != nil {
			b, _ = Plain(b) // the library does not know opaque JSON
		}
		if err := msgpack.Unmarshal(b, &lib); err != nil {
			t.Errorf("the library refuses it: %v", err)
		}
		once, err := AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		w, err := DecodeValue(once)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := AppendValue(nil, w)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("not stable: %x, %x, %v", once, twice, err)
		}
	})
}

// FuzzDecodeMessages: no message of a guest makes a decoder panic, and an accepted message can be written again.
func FuzzDecodeMessages(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeResult(b); err == nil {
			if _, err := DecodeResult(AppendResult(nil, &r)); err != nil {
				t.Errorf("result: %v", err)
			}
			if d := r.Declared; d != nil {
				for _, part := range append(d.Apply, d.Status) {
					if part != nil && Check(part) != nil {
						t.Errorf("declared: %v", Check(part))
					}
				}
			}
		}
		if m, _, err := DecodeManifest(b); err == nil {
			if again, err := EncodeManifest(m); err != nil || Check(again) != nil {
				t.Errorf("manifest: %v", err)
			}
		}
		if req, _, err := DecodeRequest[APIRequest](b); err == nil && req.Object != nil {
			if _, err := DecodeValue(req.Object); err != nil && Check(req.Object) != nil {
				t.Errorf("object of an accepted request: %v", err)
			}
		}
		if r, err := DecodeMapResult(b); err == nil {
			if _, err := DecodeMapResult(AppendMapResult(nil, &r)); err != nil || len(r.Keys) > MaxItems {
				t.Errorf("keys: %v", err)
			}
		}
		if r, err := DecodeAdmissionResult(b); err == nil {
			for _, part := range [][]byte{r.Object, r.Base} {
				if part != nil && Check(part) != nil {
					t.Errorf("verdict: %v", Check(part))
				}
			}
			if d := r.Denied; d != nil && (r.Object != nil || len(d.Causes) > MaxCauses || d.Code != 0 && (d.Code < 400 || d.Code > 599)) {
				t.Errorf("verdict: %+v", d)
			}
			if len(r.Warnings) > MaxWarnings || len(r.Audit) > MaxAudit || r.Base != nil && r.Object == nil {
				t.Errorf("verdict: %+v", r)
			}
		}
		if r, err := DecodeConversionResult(b, 2); err == nil && r.Error == nil {
			for _, o := range r.Objects {
				if v, err := DecodeObject(o); err != nil || v == nil {
					t.Errorf("converted: %v", err)
				}
			}
			if len(r.Objects) != 2 {
				t.Errorf("%d objects", len(r.Objects))
			}
		}
		_, _, _ = DecodeConfigureResult(b)
		_, _, _ = DecodeRequest[ConfigRequest](b)
		_, _, _ = DecodeRequest[EventRequest](b)
	})
}
