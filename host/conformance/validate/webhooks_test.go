// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// TestRandomObjects_AreOfTheSchema compares them with Kubernetes' own validation of a CRD.
func TestRandomObjects_AreOfTheSchema(t *testing.T) {
	for _, example := range []string{"webapp", "website", "memcached", "periodicjob"} {
		text, err := os.ReadFile("../../../examples/" + example + "/crd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		js, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := memapi.ParseCRD(js)
		if err != nil {
			t.Fatal(err)
		}
		var crd object
		if err := utiljson.Unmarshal(js, &crd); err != nil || !isCRD(crd) {
			t.Fatal(err)
		}
		objects := randomObjects(crd)
		if len(objects) != randoms*len(kinds) {
			t.Errorf("%s: %d objects of %d versions", example, len(objects), len(kinds))
		}
		server := memapi.New(memapi.Config{Kinds: kinds})
		for _, o := range objects {
			if err := server.Put(o); err != nil {
				t.Errorf("%s: %v: %v", example, o, err)
			}
		}
	}
}

// TestModule_FindsFaultsOfWebhooks scripts the guest of the conformance kit, which returns the verdicts that its object contains.
func TestModule_FindsFaultsOfWebhooks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds a module with the Go toolchain")
	}
	module := build(t, "../guests/go")
	m, err := host.Describe(t.Context(), module, host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	module = withManifest(t, module, m)
	cache := t.TempDir()
	of := func(spec object) object {
		return object{"apiVersion": "conformance.wasmctl.dev/v1", "kind": "Case", "metadata": object{"name": "case", "labels": object{}}, "spec": spec}
	}
	denied := object{"denied": object{"message": "no"}}
	for name, tc := range map[string]struct {
		spec object
		want []string // checks of webhooks that are not ok
	}{
		"nothing":        {object{}, nil},
		"a trap":         {object{"validate": object{"steps": []any{object{"do": "trap", "text": "on purpose"}}}}, []string{"fail validate"}},
		"no decision":    {object{"default": object{"error": object{"class": "transient", "message": "later"}}}, []string{"warn default"}},
		"its own result": {object{"default": object{"object": of(object{"default": object{"object": of(object{"a": 1})}})}}, []string{"fail default.again"}},
		"an invalid one": {object{"default": object{"object": of(object{"validate": denied})}}, []string{"fail default.valid"}},
		"a lost field":   {object{"default": object{"object": of(object{"a": 1})}}, []string{"fail default.fields"}},
		"with base":      {object{"default": object{"object": of(object{"a": 1}), "base": of(object{})}}, []string{"warn default"}}, // a DELETE has no object
		"no conversion":  {object{"convert": object{"error": object{"class": "permanent", "message": "no way"}}}, []string{"warn convert"}},
	} {
		t.Run(name, func(t *testing.T) {
			not, r := verdicts(t, module, Options{Objects: []map[string]any{of(tc.spec)}, CacheDir: cache})
			var got []string
			for _, check := range not {
				if strings.Contains(check, "validate") || strings.Contains(check, "default") || strings.Contains(check, "convert") {
					got = append(got, check)
				}
			}
			if strings.Join(got, ", ") != strings.Join(tc.want, ", ") {
				t.Errorf("got %q, want %q\n%+v", got, tc.want, r.Checks)
			}
		})
	}
}

// TestSchemas_Prune removes what the API server removes: a conversion that leaves a field in a version that lacks it loses the field.
func TestSchemas_Prune(t *testing.T) {
	text, preserve := object{"type": "string"}, "x-kubernetes-preserve-unknown-fields"
	for name, spec := range map[string]object{
		"unknown":   {"type": "object", "properties": object{"a": text}},
		"known":     {"type": "object", "properties": object{"a": text, "color": text}},
		"preserved": {"type": "object", preserve: true, "properties": object{"deep": object{"type": "object"}}},
		"map":       {"type": "object", "additionalProperties": object{preserve: true}},
		"list":      {"type": "object", "properties": object{"list": object{"type": "array", "items": object{"type": "object", "properties": object{"a": text}}}}},
		"embedded":  {"type": "object", "properties": object{"deep": object{"type": "object", "x-kubernetes-embedded-resource": true, "properties": object{"a": text}}}},
	} {
		root := object{"type": "object", "properties": object{"spec": spec}}
		o := func() object {
			return object{
				"apiVersion": "example.dev/v1", "kind": "Shop", "metadata": object{"name": "x"},
				"spec": object{
					"a": "x", "color": "red", "list": []any{object{"a": "x", "b": "y"}},
					"deep": object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"}, "b": "y"},
				},
			}
		}
		js, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		var v1 apiextensionsv1.JSONSchemaProps
		var internal apiextensions.JSONSchemaProps
		if err := errors.Join(json.Unmarshal(js, &v1), apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil)); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		want := o()
		pruning.Prune(want, structural, true)
		s, got := schemas{}, o()
		s.add(object{"spec": object{
			"group": "example.dev", "names": object{"kind": "Shop"}, "versions": []any{object{"name": "v1", "schema": object{"openAPIV3Schema": root}}, object{"name": "v2"}},
		}})
		s.prune(got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, and the API server has %v", name, got["spec"], want["spec"])
		}
	}
}

func TestLost_NamesTheField(t *testing.T) {
	all := object{"a": int64(1), "b": object{"c": []any{"x", object{"d": true}}}, "zero": int64(0), "none": nil, "list": []any{}}
	for want, other := range map[string]object{
		"":         {"a": int64(1), "b": object{"c": []any{"x", object{"d": true}}}, "more": "x"},
		"a":        {"a": 1.5, "b": all["b"]},
		"b.c":      {"a": int64(1), "b": object{"c": []any{"x"}}},
		"b.c[1].d": {"a": int64(1), "b": object{"c": []any{"x", object{}}}},
		"b.c[0]":   {"a": int64(1), "b": object{"c": []any{"y", object{"d": true}}}},
	} {
		if got := lost(encode(all), encode(other)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
