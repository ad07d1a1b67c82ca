// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FieldsOf returns the types of the fields of a struct by their names in JSON, or nil for
// another type.
func FieldsOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all[name] = f.Type
		}
	}
	return all
}

// Errors joins errors about fields. The function name returns the form in which a front end
// prints the path of a field.
func Errors(list field.ErrorList, name func(path string) string) error {
	var errs []error
	for _, e := range list {
		where := name(e.Field)
		if value := fmt.Sprint(e.BadValue); e.Type == field.ErrorTypeInvalid && value != "" {
			if _, number := e.BadValue.(int32); !number {
				value = fmt.Sprintf("%q", value)
			}
			where += " " + value
		}
		errs = append(errs, fmt.Errorf("%s: %s", where, e.Detail))
	}
	return errors.Join(errs...)
}
