package runfile

import (
	"encoding/json"

	"github.com/spf13/pflag"
)

// schema is as much of JSON Schema as a file needs.
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
func Schema(flags Flags) []byte {
	process := object(flags.Process)
	process.Description = "Options of the process, as the flags of wasmctl run. Flags on the command line take precedence."
	defaults := object(flags.Controller, "name")
	defaults.Description = "Defaults for all controllers."
	controller := object(flags.Controller)
	controller.Properties[moduleKey] = &schema{Type: typeText, Description: "Path of the WebAssembly module, relative to this file"}
	controller.Required = []string{"name", moduleKey}
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
		panic("BUG: schema: " + err.Error()) // strings
	}
	return append(b, '\n')
}

// object is the schema of a mapping of keys of flags, without some of them.
func object(flags *pflag.FlagSet, except ...string) *schema {
	o := &schema{Type: typeMap, Properties: map[string]*schema{}, Additional: false}
	for key, flag := range keys(flags) {
		o.Properties[key] = valueSchema(flag)
	}
	for _, key := range except {
		delete(o.Properties, key)
	}
	return o
}

// valueSchema is the schema of a flag's value. A number or a truth may be text
// too: it may come from the environment, as "${NAME}".
func valueSchema(flag *pflag.Flag) *schema {
	_, usage := pflag.UnquoteUsage(flag)
	s := &schema{Description: usage}
	switch t := typeOf(flag); t {
	case typeMap:
		s.Type, s.Additional = t, &schema{Type: []string{typeText, "number", typeBool}}
	case typeList:
		s.Type, s.Items = []string{t, typeText}, &schema{Type: typeText}
	case typeText:
		s.Type = []string{t, "number"}
	default:
		s.Type = []string{t, typeText}
	}
	return s
}
