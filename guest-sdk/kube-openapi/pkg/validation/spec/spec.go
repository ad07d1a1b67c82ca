// SPDX-License-Identifier: Apache-2.0

// Package spec has the types of OpenAPI schemas. A module neither reads nor
// writes schemas.
package spec

// Schema is a schema.
type Schema struct {
	VendorExtensible
	SchemaProps
}

// SchemaProps are the fields of a schema that other libraries use.
type SchemaProps struct {
	ID          string
	Ref         Ref
	Description string
	Type        StringOrArray
	Format      string
	Default     any
	Enum        []any
	Required    []string
	Items       *SchemaOrArray
	AllOf       []Schema
	OneOf       []Schema
	AnyOf       []Schema
	Not         *Schema
	Properties  map[string]Schema

	AdditionalProperties *SchemaOrBool
}

// VendorExtensible has extensions.
type VendorExtensible struct{ Extensions Extensions }

// Extensions are extensions by name.
type Extensions map[string]any

// StringOrArray is a list of strings.
type StringOrArray []string

// SchemaOrArray is one schema or several.
type SchemaOrArray struct {
	Schema  *Schema
	Schemas []Schema
}

// SchemaOrBool is a schema, or a bool that allows any value.
type SchemaOrBool struct {
	Allows bool
	Schema *Schema
}

// Ref refers to another schema.
type Ref struct{ text string }

// String returns the name.
func (r *Ref) String() string { return r.text }
