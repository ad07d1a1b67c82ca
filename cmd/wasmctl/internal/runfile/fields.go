// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"reflect"
	"strings"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// find returns the field with this path, or nil if there is none.
func (f Format) find(path string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Path == path {
			return &f.Fields[i]
		}
	}
	return nil
}

// now returns the path of the field that formerly had this key, or "" if there is none.
func (f Format) now(former string) string {
	for i := range f.Fields {
		if f.Fields[i].Former == former && f.Fields[i].Path != former {
			return f.Fields[i].Path
		}
	}
	return ""
}

// fieldsBelow returns the types of the allowed fields of a struct at this path, by name. All fields
// below a field of the format are allowed.
func (f Format) fieldsBelow(t reflect.Type, path string) map[string]reflect.Type {
	all := v1alpha1.FieldsOf(t)
	for key := range all {
		if !f.has(below(path, key)) {
			delete(all, key)
		}
	}
	return all
}

// has reports whether a file may have the field with this path.
func (f Format) has(path string) bool {
	for i := range f.Fields {
		known := f.Fields[i].Path
		if path == known || strings.HasPrefix(known, path+".") || strings.HasPrefix(path, known+".") || strings.HasPrefix(path, known+"[") {
			return true
		}
	}
	return false
}
