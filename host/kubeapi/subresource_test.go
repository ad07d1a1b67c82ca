// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

const sprocketCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: sprockets.kubeapi.wasmctl.dev
spec:
  group: kubeapi.wasmctl.dev
  scope: Namespaced
  names: {kind: Sprocket, plural: sprockets, singular: sprocket, shortNames: [spr], listKind: SprocketList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              share: {type: number}
              none: {type: string, nullable: true}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id, kind]
                items:
                  type: object
                  required: [id]
                  properties: {id: {type: integer}, kind: {type: string, default: x}, flag: {type: boolean}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {size: {type: integer}}}
`

func (s *session) sprocketRef(name string) map[string]any {
	return map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "namespace": s.ns, "name": name}
}

func (s *session) sprocket(name string, kv ...any) map[string]any {
	return with(map[string]any{
		"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "metadata": map[string]any{"name": name, "namespace": s.ns},
	}, kv...)
}

func TestCall_StatusOfACustomResource(t *testing.T) {
	s := sharedSession(t)
	spec := map[string]any{"size": 1, "share": 0.5}
	made := s.ok(abi.OpAPICreate, map[string]any{"object": s.sprocket("w", "spec", spec, "status", map[string]any{"size": 9})})
	if made["status"] != nil || at(made, "spec", "share") != 0.5 || at(made, "spec", "size") != int64(1) {
		t.Errorf("created: %v", made)
	}
	status := map[string]any{"object": s.sprocket("w", "spec", map[string]any{"size": 7}, "status", map[string]any{"size": 2}), "subresource": "status"}
	for name, got := range map[string]map[string]any{
		"apply": s.ok(abi.OpAPIApply, with(status, "force", true)),
		"update": s.ok(abi.OpAPIUpdate, with(status, "preconditions", map[string]any{
			"resourceVersion": at(s.ok(abi.OpAPIGet, s.sprocketRef("w")), "metadata", "resourceVersion"),
		})),
		"patch": s.ok(abi.OpAPIPatch, with(s.sprocketRef("w"), "subresource", "status", "patchType", "merge", "patch", map[string]any{
			"spec": map[string]any{"size": 7}, "status": map[string]any{"size": 2},
		})),
		"get": s.ok(abi.OpAPIGet, with(s.sprocketRef("w"), "subresource", "status")),
	} {
		if at(got, "status", "size") != int64(2) || at(got, "spec", "size") != int64(1) {
			t.Errorf("%s of the status: spec %v, status %v", name, got["spec"], got["status"])
		}
	}
}

// TestCall_ScaleIsOfAnotherKind: the object of a subresource may have a kind of its own.
func TestCall_ScaleIsOfAnotherKind(t *testing.T) {
	s := sharedSession(t)
	s.ok(abi.OpAPICreate, map[string]any{"object": s.sprocket("w", "spec", map[string]any{"size": 1})})
	ref := with(s.sprocketRef("w"), "subresource", "scale")
	scale := s.ok(abi.OpAPIGet, ref)
	if scale["kind"] != "Scale" || at(scale, "spec", "replicas") != int64(1) {
		t.Fatalf("scale: %v", scale)
	}
	scale["spec"] = map[string]any{"replicas": 3}
	s.ok(abi.OpAPIUpdate, with(ref, "object", scale))
	s.ok(abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"spec": map[string]any{"replicas": 4}}))
	if got := s.ok(abi.OpAPIGet, s.sprocketRef("w")); at(got, "spec", "size") != int64(4) {
		t.Errorf("spec after scaling: %v", got["spec"])
	}
	s.fails(404, "", abi.OpAPIGet, with(s.sprocketRef("w"), "subresource", "nonsense"))
}

func TestCall_CreateOfASubresource(t *testing.T) {
	s := sharedSession(t)
	s.ok(abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "sa", "namespace": s.ns},
	}})
	token := s.ok(abi.OpAPICreate, map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "namespace": s.ns, "name": "sa", "subresource": "token",
		"object": map[string]any{"spec": map[string]any{"audiences": []any{}}},
	})
	if token["kind"] != "TokenRequest" || at(token, "status", "token") == "" {
		t.Errorf("token request: %v", token)
	}
}

// TestCall_RetryAfterIsBoundedByTheContext evicts a pod whose disruption budget was not observed
// yet: the API server answers 429 with a retry after ten seconds.
func TestCall_RetryAfterIsBoundedByTheContext(t *testing.T) {
	s := sharedSession(t)
	s.ok(abi.OpAPICreate, map[string]any{"object": s.pod("p")})
	s.ok(abi.OpAPIPatch, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "namespace": s.ns, "name": "p", "subresource": "status", "patchType": "merge",
		"patch": map[string]any{"status": map[string]any{"phase": "Running"}},
	})
	s.ok(abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": map[string]any{"name": "b", "namespace": s.ns},
		"spec": map[string]any{"minAvailable": 1, "selector": map[string]any{"matchLabels": map[string]any{"app": "p"}}},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	got := s.Call(ctx, abi.OpAPICreate, msg(t, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "namespace": s.ns, "name": "p", "subresource": "eviction", "object": map[string]any{},
	}))
	if got.Status != abi.StatusCancelled || time.Since(start) >= 10*time.Second {
		t.Errorf("%v after %v: %v", got.Status, time.Since(start), statusBody(t, got))
	}
}
