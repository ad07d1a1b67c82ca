// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"os"
	"strings"
	"testing"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// TestPlural_IsTheResourceOfEachKind reads the table that the pluralizers of the SDKs are
// tested with too, and compares it with the library of kubebuilder. It has all built-in kinds, for which apimachinery's rules were made.
func TestPlural_IsTheResourceOfEachKind(t *testing.T) {
	content, err := os.ReadFile("testdata/plurals.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(content)) {
		kind, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		listed[kind] = want
		if got := kinds.Plural(kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if theirs := flect.Pluralize(strings.ToLower(kind)); theirs != want {
			t.Errorf("%s: the table has %s, kubebuilder %s", kind, want, theirs)
		}
	}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := typ.FieldByName("ObjectMeta"); !ok {
			continue
		}
		if want, _ := meta.UnsafeGuessKindToResource(gvk); listed[gvk.Kind] != want.Resource {
			t.Errorf("the table has %q for %s, want %s", listed[gvk.Kind], gvk.Kind, want.Resource)
		}
	}
}
