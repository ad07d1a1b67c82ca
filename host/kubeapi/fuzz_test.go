// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// FuzzDeclare: no decoded result of a guest causes a panic in the checks, and a policy without
// rules permits nothing: no child, no status.
func FuzzDeclare(f *testing.F) {
	files, err := filepath.Glob("../../abi/testdata/result-*.msgpack")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, child := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"../x","namespace":"other","generateName":"y"},"spec":[]}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","ownerReferences":{}}}`,
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(child), &object); err != nil {
			f.Fatal(err)
		}
		f.Add(msg(f, map[string]any{"action": "await", "apply": []any{object, object}, "prune": true, "force": true, "status": map[string]any{}}))
	}
	api := offlineAPI(f, nil)
	owner := Owner{Kind: resolve(f, api.cfg.Resolver, "configmaps"), Object: msg(f, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7"},
	})}
	f.Fuzz(func(t *testing.T, b []byte) {
		res, err := abi.DecodeResult(b)
		if err != nil || res.Declared == nil {
			return
		}
		err = api.Declare(t.Context(), owner, res.Declared)
		d := res.Declared
		if harmless := len(d.Apply) == 0 && d.Status == nil; err == nil && !harmless {
			t.Errorf("%x was carried out", b)
		}
		if _, named := errors.AsType[*abi.ResultError](err); err != nil && !named {
			t.Errorf("%x: %v has no class", b, err)
		}
	})
}
