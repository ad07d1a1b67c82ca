// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// locateObject sets the parts of the request that only the object has, and checks that both agree.
func (r *request) locateObject() error {
	gvk := r.objectKind()
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	for _, f := range [][3]string{{"apiVersion", apiVersion, r.head.apiVersion}, {"kind", kind, r.head.kind}} {
		if _, err := agree(f[0], f[1], f[2]); err != nil {
			return err
		}
	}
	var err error
	if r.key.Name, err = agree("name", r.key.Name, r.head.name); err != nil {
		return err
	}
	r.key.Namespace, err = agree("namespace", r.key.Namespace, r.head.namespace)
	return err
}

// objectKind returns the kind of the object: that of the request, or of the subresource.
func (r *request) objectKind() schema.GroupVersionKind {
	gvk := r.kind.GVK()
	if sub, ok := r.kind.Subresources[r.Subresource]; ok && r.Subresource != "" && r.head.kind != gvk.Kind {
		return sub
	}
	return gvk
}

// completeObject adds the parts that only the rest of the request has to the object.
func (r *request) completeObject() {
	r.object["apiVersion"], r.object["kind"] = r.objectKind().ToAPIVersionAndKind()
	meta, _ := r.object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	for _, f := range [...][2]string{{"name", r.key.Name}, {"namespace", r.key.Namespace}} {
		if f[1] != "" {
			meta[f[0]] = f[1]
		}
	}
	r.object["metadata"] = meta
}

// addPreconditions adds the preconditions of update, patch and apply to the body. Those of delete
// are in its options.
func (r *request) addPreconditions() error {
	conditions := preconditions(r.Preconditions)
	if len(conditions) == 0 || r.op == abi.OpAPIDelete {
		return nil
	}
	if ops, ok := r.patch.([]any); ok {
		// At the end, so that no operation of the guest follows.
		for _, key := range []string{"uid", "resourceVersion"} {
			if value, ok := conditions[key]; ok {
				ops = append(ops, map[string]any{"op": "add", "path": "/metadata/" + key, "value": value})
			}
		}
		r.patch = ops
		return nil
	}
	target, where := r.object, "object"
	if m, ok := r.patch.(map[string]any); ok {
		target, where = m, "patch"
	}
	meta, err := metadata(target, where)
	if err != nil {
		return err
	}
	for key, value := range conditions {
		inObject, err := stringAt(meta, key, where+".metadata")
		if err != nil {
			return err
		}
		if inObject != "" && inObject != value {
			return badf("preconditions.%s: %q disagrees with %q in the %s's metadata", key, shorten(value), shorten(inObject), where)
		}
		meta[key] = value
	}
	target["metadata"] = meta
	return nil
}

// preconditions returns the given preconditions by key.
func preconditions(p *abi.Preconditions) map[string]string {
	given := map[string]string{}
	if p != nil && p.UID != "" {
		given["uid"] = p.UID
	}
	if p != nil && p.ResourceVersion != "" {
		given["resourceVersion"] = p.ResourceVersion
	}
	return given
}

// metadata returns the metadata of an object, or an empty map.
func metadata(object map[string]any, where string) (map[string]any, error) {
	switch m := object["metadata"].(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return m, nil
	}
	return nil, badf("%s.metadata: must be a map", where)
}

// stringAt returns the string at a key, or "".
func stringAt(m map[string]any, key, where string) (string, error) {
	switch s := m[key].(type) {
	case nil:
		return "", nil
	case string:
		return s, nil
	}
	return "", badf("%s.%s: must be a string", where, key)
}

// agree returns the value of two sources, either of which may be empty.
func agree(key, given, inObject string) (string, error) {
	switch {
	case given == "":
		return inObject, nil
	case inObject == "" || inObject == given:
		return given, nil
	}
	return "", badf("%s: the request has %q, its object has %q: make them equal, or omit one", key, shorten(given), shorten(inObject))
}
