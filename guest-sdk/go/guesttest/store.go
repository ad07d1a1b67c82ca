// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// id names a stored object. All versions of a kind share one id.
type id struct {
	group, kind, namespace, name string
}

// store has the objects of the cluster and information on their kinds.
type store struct {
	objects map[id]map[string]any
	// applied has the fields that each manager applied.
	applied       map[id]map[string]fieldSet
	version       int64
	uids          int
	clusterScoped map[string]bool
	plurals       map[string]string
	// changes are the writes that Run has not handled yet. gone has the UIDs of
	// removed objects.
	changes []change
	gone    map[string]bool
}

// change is one write. old is nil for a created object, new for a removed one.
type change struct {
	at       id
	old, new map[string]any
}

func newStore() store {
	s := store{
		objects: map[id]map[string]any{}, applied: map[id]map[string]fieldSet{}, version: 1000, clusterScoped: map[string]bool{},
		plurals: map[string]string{"Endpoints": "endpoints"}, gone: map[string]bool{},
	}
	for _, k := range []string{
		"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "StorageClass",
		"PriorityClass", "IngressClass", "RuntimeClass", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CSIDriver", "CSINode", "VolumeAttachment", "CertificateSigningRequest",
	} {
		s.clusterScoped[k] = true
	}
	return s
}

// put stores obj unchanged, plus the fields that the API server would set.
func (s *store) put(at id, obj map[string]any, now time.Time) map[string]any {
	meta := metadata(obj)
	if meta["uid"] == nil {
		s.uids++
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
	}
	if meta["generation"] == nil {
		meta["generation"] = int64(1)
	}
	if meta["creationTimestamp"] == nil {
		meta["creationTimestamp"] = now.UTC().Format(time.RFC3339)
	}
	s.version++
	meta["resourceVersion"] = strconv.FormatInt(s.version, 10)
	s.changes = append(s.changes, change{at, s.objects[at], obj})
	s.objects[at] = obj
	return obj
}

// remove removes an object.
func (s *store) remove(at id) {
	old, ok := s.objects[at]
	if !ok {
		return
	}
	s.version++
	s.gone[str(old, "metadata", "uid")] = true
	s.changes = append(s.changes, change{at, old, nil})
	delete(s.objects, at)
	delete(s.applied, at)
}

// replace replaces old by obj and returns the stored object. As in the API
// server, an object without changes is not written, and the generation counts
// changes outside of metadata and status.
func (s *store) replace(at id, old, obj map[string]any, now time.Time) map[string]any {
	oldMeta, meta := metadata(old), metadata(obj)
	for _, k := range []string{"uid", "generation", "creationTimestamp", "resourceVersion", "deletionTimestamp"} {
		if v, ok := oldMeta[k]; ok {
			meta[k] = v
		} else {
			delete(meta, k)
		}
	}
	if reflect.DeepEqual(old, obj) {
		return old
	}
	if !reflect.DeepEqual(desired(old), desired(obj)) {
		g, _ := meta["generation"].(int64)
		meta["generation"] = g + 1
	}
	if meta["deletionTimestamp"] != nil && len(finalizers(obj)) == 0 {
		s.remove(at)
		return obj
	}
	return s.put(at, obj, now)
}

// desired returns the part of an object whose changes the generation counts.
func desired(obj map[string]any) map[string]any {
	d := maps.Clone(obj)
	maps.DeleteFunc(d, func(k string, _ any) bool { return k == "metadata" || k == "status" || k == "apiVersion" })
	return d
}

func finalizers(obj map[string]any) []any {
	list, _ := metadata(obj)["finalizers"].([]any)
	return list
}

// metadata returns the object's metadata. It creates the map if there is none.
func metadata(obj map[string]any) map[string]any {
	m, ok := obj["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj["metadata"] = m
	}
	return m
}

// str returns the string at the path, or "".
func str(v any, path ...string) string {
	for _, k := range path {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	s, _ := v.(string)
	return s
}

// groupVersion splits an apiVersion.
func groupVersion(apiVersion string) (group, version string) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		return "", apiVersion
	}
	return group, version
}

func refOf(obj map[string]any) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{
		APIVersion: str(obj, "apiVersion"), Kind: str(obj, "kind"),
		Namespace: str(obj, "metadata", "namespace"), Name: str(obj, "metadata", "name"),
	}
}

func idOf(obj map[string]any) id { return idOfRef(refOf(obj)) }

func idOfRef(r wasmctl.ObjectRef) id {
	group, _ := groupVersion(r.APIVersion)
	return id{group, r.Kind, r.Namespace, r.Name}
}

// toMap converts v, any value that can be sent, to the Go types of JSON. The
// result shares no memory with v.
func toMap(v any) (map[string]any, error) {
	b, err := wire.Append(nil, v)
	if err != nil {
		return nil, err
	}
	val, err := wire.Decode(b)
	if err != nil {
		return nil, err
	}
	m, ok := val.(map[string]any)
	if !ok {
		return nil, wire.ErrType
	}
	return m, nil
}

// clone returns a deep copy of a value in the Go types of JSON.
func clone[T any](v T) T { return cloneAny(v).(T) } //nolint:forcetypeassert // cloneAny preserves the type

func cloneAny(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = cloneAny(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = cloneAny(e)
		}
		return list
	}
	return v
}
