// SPDX-License-Identifier: Apache-2.0

package validate

import "slices"

// schemas has the schemas of the CustomResourceDefinitions of Options, by apiVersion and kind.
type schemas map[[2]string]object

// add adds the schemas of all versions of a CustomResourceDefinition.
func (s schemas) add(crd object) {
	spec, _ := crd["spec"].(object)
	names, _ := spec["names"].(object)
	kind, _ := names["kind"].(string)
	group, _ := spec["group"].(string)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(object)
		name, _ := v["name"].(string)
		schema, _ := v["schema"].(object)
		if root, ok := schema["openAPIV3Schema"].(object); ok {
			s[[2]string{apiVersion(group, name), kind}] = root
		}
	}
}

// prune removes from an object, in place, the fields that the schema of its version lacks, as the API server does. Without a schema, it
// removes nothing.
func (s schemas) prune(o object) {
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	if schema := s[[2]string{version, kind}]; schema != nil {
		prune(o, schema, true)
	}
}

// resourceFields are those of each resource, which its schema need not have.
var resourceFields = []string{"apiVersion", "kind", "metadata"}

// prune removes what the schema of a value lacks. A resource is an object of the API, or embedded in one.
func prune(v any, schema object, resource bool) {
	switch v := v.(type) {
	case []any:
		items, ok := schema["items"].(object)
		if !ok { // everything is preserved
			return
		}
		for _, item := range v {
			prune(item, items, items["x-kubernetes-embedded-resource"] == true)
		}
	case object:
		fields, _ := schema["properties"].(object)
		others, typed := schema["additionalProperties"].(object)
		keep := typed || schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true
		for key, value := range v {
			field, known := fields[key].(object)
			switch {
			case resource && slices.Contains(resourceFields, key):
				continue
			case !known && !keep:
				delete(v, key)
				continue
			case !known:
				field = others
			}
			if field != nil {
				prune(value, field, field["x-kubernetes-embedded-resource"] == true)
			}
		}
	}
}
