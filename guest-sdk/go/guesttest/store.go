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

// id names a stored object. Versions of a kind are one kind.
type id struct {
	group, kind, namespace, name string
}

// store is the objects of the cluster and what is known of their kinds.
type store struct {
	objects map[id]map[string]any
	// applied is which fields each manager applied.
	applied       map[id]map[string]fieldSet
	version       int64
	uids          int
	clusterScoped map[string]bool
	plurals       map[string]string
	// changes are what Run has not looked at yet, and gone the uids of objects
	// that were removed.
	changes []change
	gone    map[string]bool
}

// change is one write: old is nil of an object that was made, new of one that is
// gone.
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

// put stores obj as it is, with what the API server would have set.
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

// remove takes an object out.
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

// replace stores obj over old and returns what is there then. As in the
// API server, equal objects are not written and the generation counts changes
// outside of metadata and status.
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

// desired is the part of an object that the generation counts.
func desired(obj map[string]any) map[string]any {
	d := maps.Clone(obj)
	maps.DeleteFunc(d, func(k string, _ any) bool { return k == "metadata" || k == "status" || k == "apiVersion" })
	return d
}

func finalizers(obj map[string]any) []any {
	list, _ := metadata(obj)["finalizers"].([]any)
	return list
}

// metadata returns the object's metadata, which it makes if there is none.
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

// toMap returns v, which may be anything that can be sent, as the Go types of
// JSON, sharing nothing with v.
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

// clone copies a value of the Go types of JSON.
func clone[T any](v T) T { return cloneAny(v).(T) } //nolint:forcetypeassert // it is a copy of v

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
