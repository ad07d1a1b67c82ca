// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

func want(t *testing.T, f Finding, level Level, text string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Text, text) {
		t.Errorf("%+v, want %s with %q", f, level, text)
	}
}

func TestServerVersion_ComparesWithTheOldest(t *testing.T) {
	want(t, serverVersion("v1.33.0"), OK, "v1.33.0")
	want(t, serverVersion("v1.36.2-gke.100+abc"), OK, "v1.36.2")
	want(t, serverVersion("v1.32.9"), Fail, "upgrade to 1.33")
	want(t, serverVersion("unknown"), Warn, "1.33")
}

// Neither the duration of the request nor the missing fractions of a second count.
func TestClock_WarnsOnlyOfACertainDifference(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 30, 500, time.UTC)
	for _, c := range []struct {
		date  time.Time
		took  time.Duration
		level Level
	}{
		{now.Truncate(time.Second), 0, OK},
		{now.Truncate(time.Second), time.Minute, OK},
		{now.Add(time.Minute).Truncate(time.Second), time.Minute, OK},
		{now.Add(-5 * time.Second).Truncate(time.Second), 0, OK},
		{now.Add(-8 * time.Second).Truncate(time.Second), time.Minute, Warn},
		{now.Add(67 * time.Second).Truncate(time.Second), time.Minute, Warn},
		{time.Time{}, 0, Warn},
	} {
		if f := clock(now, c.date, now.Add(c.took)); f.Level != c.level {
			t.Errorf("%v after %v: %+v", c.date, c.took, f)
		}
	}
}

func TestGroupsAndRights_NameTheMissing(t *testing.T) {
	want(t, groups([]string{"apps/v1", "b/v1"}, []string{"b/v1", "apps/v1", "c/v1"}), OK, "2")
	want(t, groups([]string{"apps/v1", "b/v1"}, []string{"apps/v1", "b/v2"}), Fail, "b/v1")
	want(t, rights(nil, true), OK, "")
	want(t, rights(nil, false), Warn, "ClusterRole")
	want(t, rights([]string{"namespaces"}, true), Fail, "patch namespaces")
}

// copies returns the CRDs of the binary, as the API server has them.
func copies(t *testing.T) (list []map[string]any) {
	t.Helper()
	objects, err := v1alpha1.CRDObjects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		m, ok := o.(map[string]any)
		if !ok {
			t.Fatalf("%T", o)
		}
		m["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		list = append(list, m)
	}
	return list
}

func TestCRD_MustBeThatOfTheBinary(t *testing.T) {
	for i, mine := range copies(t) {
		want(t, crd("c", nil, mine), OK, "not installed")
		want(t, crd("c", copies(t)[i], mine), OK, "needs")
		deleted := copies(t)[i]
		deleted["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		want(t, crd("c", deleted, mine), Fail, "uninstall")
		broken := copies(t)[i]
		delete(broken, "status")
		want(t, crd("c", broken, mine), Fail, "wasmctl crds")
		other := copies(t)[i]
		spec := other["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		spec["served"] = false
		want(t, crd("c", other, mine), Fail, "not served")

		old := copies(t)[i]
		schema := old["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		fields := schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
		delete(fields, "suspend")
		delete(fields["rollout"].(map[string]any)["properties"].(map[string]any), "shadow")
		want(t, crd("c", old, mine), Fail, "lacks spec.rollout.shadow, spec.suspend: wasmctl crds")
		if extra := missingFields("", schemaOf(versionOf(old)), schemaOf(versionOf(mine))); len(extra) > 0 {
			t.Errorf("the newer one lacks %q", extra)
		}
	}
}

func TestMissingFields_LooksIntoItems(t *testing.T) {
	object := func(fields map[string]any) map[string]any { return map[string]any{"properties": fields} }
	list := map[string]any{"items": object(map[string]any{"a": object(nil), "b": object(nil)})}
	have := map[string]any{"items": object(map[string]any{"a": object(nil)})}
	got := missingFields("", object(map[string]any{"l": list, "m": map[string]any{"additionalProperties": list}}), object(map[string]any{"l": have, "m": map[string]any{"additionalProperties": have}}))
	if !slices.Equal(got, []string{"l[].b", "m[][].b"}) {
		t.Errorf("%q", got)
	}
}
