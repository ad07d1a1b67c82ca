// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// schema is the part of JSON Schema that a file needs.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a string, or several
	Const       string             `json:"const,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	// Additional is false, or the schema of all values.
	Additional any `json:"additionalProperties,omitempty"`
}

// Schema returns the JSON Schema (draft 2020-12) of a file.
func Schema(format Format) []byte {
	process := &schema{Type: typeMap, Properties: map[string]*schema{}, Additional: false}
	for key, flag := range keys(format.Process) {
		process.Properties[key] = flagSchema(flag)
	}
	process.Description = "Options of the process, as the flags of wasmctl run. Flags on the command line take precedence."
	spec := reflect.TypeFor[v1alpha1.ControllerSpec]()
	defaults, controller := format.schemaOf(spec, ""), format.schemaOf(spec, "")
	delete(defaults.Properties, "name")
	defaults.Description = "Defaults for all controllers."
	controller.Required = []string{"name", "module"}
	root := &schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "The controllers of a wasmctl process", Type: typeMap, Additional: false,
		Required: []string{"apiVersion", "kind", "controllers"},
		Properties: map[string]*schema{
			"apiVersion": {Const: APIVersion}, "kind": {Const: Kind}, "process": process, "defaults": defaults,
			"controllers": {Type: typeList, Items: controller, MinItems: 1},
		},
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("BUG: schema: " + err.Error()) // it contains only strings and numbers
	}
	return append(b, '\n')
}

// schemaOf returns the schema of a field with this type. Numbers and booleans can also be texts, because
// a text can contain an environment variable.
func (f Format) schemaOf(t reflect.Type, path string) *schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &schema{}
	if field := f.find(path); field != nil {
		s.Description = strings.ReplaceAll(field.Help, "`", "")
	}
	_, own := reflect.TypeAssert[json.Unmarshaler](reflect.New(t))
	text := []string{typeText}
	switch t.Kind() {
	case reflect.Struct:
		if s.Type = typeMap; own {
			s.Type = []string{typeMap, typeText}
		}
		s.Properties, s.Additional = map[string]*schema{}, false
		for key, field := range f.fieldsBelow(t, path) {
			s.Properties[key] = f.schemaOf(field, below(path, key))
		}
	case reflect.Map:
		s.Type, s.Additional = typeMap, &schema{Type: []string{typeText, "number", typeBool}}
		for i := range f.Fields { // entries with a field of their own
			if key, ok := strings.CutPrefix(f.Fields[i].Path, path+"."); ok {
				if s.Properties == nil {
					s.Properties = map[string]*schema{}
				}
				s.Properties[key] = &schema{Description: strings.ReplaceAll(f.Fields[i].Help, "`", ""), Type: []string{typeText, "number"}}
			}
		}
	case reflect.Slice:
		s.Type, s.Items = append([]string{typeList}, text...), f.schemaOf(t.Elem(), path+"[0]")
	case reflect.Bool:
		s.Type = append([]string{typeBool}, text...)
	case reflect.Int32:
		s.Type = append([]string{typeInt}, text...)
	default:
		s.Type = append(text, "number")
	}
	return s
}

// flagSchema returns the schema of a flag's value.
func flagSchema(flag *pflag.Flag) *schema {
	_, usage := pflag.UnquoteUsage(flag)
	s := &schema{Description: usage}
	switch t := typeOf(flag); t {
	case typeList:
		s.Type, s.Items = []string{t, typeText}, &schema{Type: typeText}
	case typeText:
		s.Type = []string{t, "number"}
	default:
		s.Type = []string{t, typeText}
	}
	return s
}
