// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"testing"
	"time"
)

type typedApp struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       struct {
		Replicas *int32            `json:"replicas,omitempty"`
		Secret   []byte            `json:"secret,omitempty"`
		Rest     map[string]Value  `json:"rest,omitempty"`
		Env      map[string]string `json:"env,omitempty"`
	} `json:"spec"`
}

// TestObjectMeta_TypedObjectsComeBackAsTheyWere encodes and decodes complete
// and nearly empty objects.
func TestObjectMeta_TypedObjectsComeBackAsTheyWere(t *testing.T) {
	three := int32(3)
	full := typedApp{APIVersion: "a/v1", Kind: "App", Metadata: ObjectMeta{
		Name: "web", Namespace: "shop", UID: "u1", ResourceVersion: "7", Generation: 4,
		CreationTimestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), DeletionTimestamp: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"größe": ""}, Finalizers: []string{"x/y"},
		OwnerReferences: []OwnerReference{{APIVersion: "v1", Kind: "A", Name: "n", UID: "u0", Controller: true}},
	}}
	full.Spec.Replicas, full.Spec.Secret, full.Spec.Env = &three, []byte{0, 255}, map[string]string{"k": "v"}
	for _, app := range []typedApp{full, {Kind: "App", Metadata: ObjectMeta{Name: "small"}}} {
		obj := testObject(t, app)
		back, err := Decode[typedApp](obj.Value)
		equal(t, err, nil)
		equal(t, back, app)
		equal(t, obj.IsDeleting(), !app.Metadata.DeletionTimestamp.IsZero())
		equal(t, obj.Exists("metadata", "creationTimestamp"), !app.Metadata.CreationTimestamp.IsZero())
	}
}

func TestObjectMeta_APartMayStayAsItIs(t *testing.T) {
	obj := testObject(t, Map{"spec": Map{"rest": Map{"x": Map{"deep": []any{1, 2}}}}})
	app, err := Decode[typedApp](obj.Value)
	equal(t, err, nil)
	equal(t, testObject(t, app).Len("spec", "rest", "x", "deep"), 2)
}
