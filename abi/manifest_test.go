// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// isQualifiedName agrees with apimachinery, on edge cases and on random names.
func TestQualifiedName_AgreesWithApimachinery(t *testing.T) {
	x63, x253 := strings.Repeat("x", 63), strings.Repeat("x", 62)+strings.Repeat("."+strings.Repeat("x", 60), 3)+strings.Repeat("y", 8)
	names := []string{"", "/", "a/", "/a", "a/b/c", "a.b/c", "A/b", "a/B", "a..b/c", "-a", "a-", "a/-b", "a_b.c-d", "a_b/c", ".a/b", "é", x63, x63 + "x", x63 + ".x/" + x63, x253 + "/n", x253 + "y/n"}
	rnd := rand.New(rand.NewPCG(5, 6))
	const letters = "aZ0-_./é"
	for range 20_000 {
		b := make([]byte, rnd.IntN(8))
		for i := range b {
			b[i] = letters[rnd.IntN(len(letters))]
		}
		names = append(names, string(b))
	}
	for _, name := range names {
		if got, want := isQualifiedName(name), len(validation.IsQualifiedName(name)) == 0; got != want {
			t.Fatalf("%q: got %v, apimachinery says %v", name, got, want)
		}
	}
}

// An empty list of hooks means that no export is implemented, and must be preserved when a manifest is written to its
// section.
func TestManifest_EmptyHooksAreNotAbsent(t *testing.T) {
	for _, hooks := range []HookNames{nil, {}, {"map"}} {
		b, err := EncodeManifest(&Manifest{Name: "n", Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := DecodeManifest(b)
		if err != nil || (m.Hooks == nil) != (hooks == nil) || len(m.Hooks) != len(hooks) {
			t.Errorf("wrote %#v, read %#v, %v", hooks, m.Hooks, err)
		}
		js, err := json.Marshal(m)
		if err != nil || strings.Contains(string(js), "hooks") != (hooks != nil) {
			t.Errorf("%s, %v", js, err)
		}
		if got := m.Hook("map", true); got != (len(hooks) != 0 || hooks == nil) {
			t.Errorf("%#v: map is real: %v", hooks, got)
		}
	}
}

func TestManifest_ValidatesMapsAndFinalizer(t *testing.T) {
	for _, value := range []string{"owner", "func", "label:app", "annotation:example.com/for"} {
		m := Manifest{Watches: []Watch{{Kind: "K", Map: value}}, Finalizer: "example.com/cleanup"}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	for value, want := range map[string]string{
		"":                   `watches[0]: map is required`,
		"owners":             `watches[0]: map "owners" is none of "owner"`,
		"label":              `map "label" is none of`,
		"label:":             `"" is not the key of a label or annotation`,
		"annotation:a b":     `"a b" is not the key`,
		"annotation:a/b/c":   `"a/b/c" is not the key`,
		"label:annotation:x": `"annotation:x" is not the key`,
	} {
		m := Manifest{Watches: []Watch{{Kind: "K", Map: value}}}
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", value, err, want)
		}
	}
	for _, name := range []string{"example.com/", "/cleanup", "Example.com/x", "a/b/c", "clean up"} {
		m := Manifest{Finalizer: name}
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "domain/name") {
			t.Errorf("finalizer %q: %v", name, err)
		}
	}
}

// TestManifest_FinalizerWithoutADomainIsWarnedOf: custom resources of old controllers have one; no kind of Kubernetes
// can.
func TestManifest_FinalizerWithoutADomainIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		manifest       Manifest
		refused, warns bool
	}{
		"custom resource":     {Manifest{Finalizer: "cleanup", For: &Watch{Group: "example.com", Kind: "App"}}, false, true},
		"like a domain":       {Manifest{Finalizer: "cleanup.example.com", For: &Watch{Group: "example.com", Kind: "App"}}, false, true},
		"maybe a custom one":  {Manifest{Finalizer: "cleanup", For: &Watch{Group: "gateway.networking.k8s.io", Kind: "Gateway"}}, false, true},
		"no kind yet":         {Manifest{Finalizer: "cleanup"}, false, true},
		"core":                {Manifest{Finalizer: "cleanup", For: &Watch{Kind: "ConfigMap"}}, true, true},
		"a group of its own":  {Manifest{Finalizer: "cleanup", For: &Watch{Group: "apps", Kind: "Deployment"}}, true, true},
		"core, with a domain": {Manifest{Finalizer: "example.com/cleanup", For: &Watch{Kind: "ConfigMap"}}, false, false},
		"none":                {Manifest{For: &Watch{Kind: "ConfigMap"}}, false, false},
	} {
		err, warnings := c.manifest.Validate(), c.manifest.Warnings()
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "only for custom resources") || (len(warnings) > 0) != c.warns {
			t.Errorf("%s: %v, warnings %q", name, err, warnings)
		}
	}
}

// TestManifest_CannotNameAFinalizerOfKubernetes, which the host would remove from an object while it still protects
// something.
func TestManifest_CannotNameAFinalizerOfKubernetes(t *testing.T) {
	for _, name := range []string{
		"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "k8s.io/x", "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
		"service.kubernetes.io/load-balancer-cleanup", "external-attacher.storage.k8s.io/x",
		"foregroundDeletion", "orphan", "kubernetes", "kubernetes.io", "protection.storage.k8s.io",
	} {
		m := Manifest{Finalizer: name}
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "belongs to Kubernetes itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"example.com/kubernetes.io", "mykubernetes.io/x", "cluster.x-k8s.io/x"} {
		m := Manifest{Finalizer: name}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManifest_FixedLimitsAreRefused(t *testing.T) {
	for _, name := range FixedLimits {
		b := mustValue(map[string]any{"for": map[string]any{"kind": "A"}, "limits": map[string]any{"memory": int64(1 << 20), string(name): int64(1)}})
		want := "manifest: limits." + string(name) + ": " + FixedText
		if _, _, err := DecodeManifest(b); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
