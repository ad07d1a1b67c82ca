// SPDX-License-Identifier: Apache-2.0

// Package proto has the types of models. A module has no models.
package proto

import (
	"errors"
	"slices"
	"strings"
)

// Models gives access to models by name.
type Models interface {
	// LookupModel returns a model, or nil.
	LookupModel(name string) Schema
	// ListModels returns the names.
	ListModels() []string
}

// NewOpenAPIData returns an error, because a module does not read OpenAPI
// documents.
func NewOpenAPIData(any) (Models, error) {
	return nil, errors.New("kube-openapi: a module reads no OpenAPI documents")
}

// Schema is the schema of a value.
type Schema interface {
	// Accept calls the visitor's method for the kind of schema.
	Accept(v SchemaVisitor)
	// GetName returns the name of the kind.
	GetName() string
	// GetPath returns the path of the schema.
	GetPath() *Path
	// GetDescription returns the description for people.
	GetDescription() string
	// GetDefault returns the default, or nil.
	GetDefault() any
	// GetExtensions returns the extensions.
	GetExtensions() map[string]any
}

// SchemaVisitor has a method for each kind of schema.
type SchemaVisitor interface {
	VisitArray(a *Array)
	VisitMap(m *Map)
	VisitPrimitive(p *Primitive)
	VisitKind(k *Kind)
	VisitReference(r Reference)
}

// SchemaVisitorArbitrary also accepts schemas of any value.
type SchemaVisitorArbitrary interface {
	SchemaVisitor
	VisitArbitrary(a *Arbitrary)
}

// Path is the path of a schema.
type Path struct{ at []string }

// NewPath returns the path of a key.
func NewPath(key string) Path { return Path{[]string{key}} }

// Get returns the parts.
func (p *Path) Get() []string { return slices.Clone(p.at) }

// Len returns the number of parts.
func (p *Path) Len() int { return len(p.at) }

// String returns the parts as text.
func (p *Path) String() string { return strings.Join(p.at, "") }

// FieldPath returns the path of a field.
func (p *Path) FieldPath(field string) Path { return Path{append(p.Get(), "."+field)} }

// BaseSchema has the fields that all schemas share.
type BaseSchema struct {
	Description string
	Extensions  map[string]any
	Default     any
	Path        Path
}

// GetDescription implements Schema.
func (b *BaseSchema) GetDescription() string { return b.Description }

// GetExtensions implements Schema.
func (b *BaseSchema) GetExtensions() map[string]any { return b.Extensions }

// GetDefault implements Schema.
func (b *BaseSchema) GetDefault() any { return b.Default }

// GetPath implements Schema.
func (b *BaseSchema) GetPath() *Path { return &b.Path }

// Array is a list.
type Array struct {
	BaseSchema
	SubType Schema
}

// Accept implements Schema.
func (a *Array) Accept(v SchemaVisitor) { v.VisitArray(a) }

// GetName implements Schema.
func (a *Array) GetName() string { return "Array of " + a.SubType.GetName() }

// Map is a map of strings.
type Map struct {
	BaseSchema
	SubType Schema
}

// Accept implements Schema.
func (m *Map) Accept(v SchemaVisitor) { v.VisitMap(m) }

// GetName implements Schema.
func (m *Map) GetName() string { return "Map of " + m.SubType.GetName() }

// Kind is a struct.
type Kind struct {
	BaseSchema
	RequiredFields []string
	Fields         map[string]Schema
	FieldOrder     []string
}

// Accept implements Schema.
func (k *Kind) Accept(v SchemaVisitor) { v.VisitKind(k) }

// GetName implements Schema.
func (k *Kind) GetName() string { return "Kind" }

// Primitive is a scalar.
type Primitive struct {
	BaseSchema
	Type   string
	Format string
}

// Accept implements Schema.
func (p *Primitive) Accept(v SchemaVisitor) { v.VisitPrimitive(p) }

// GetName implements Schema.
func (p *Primitive) GetName() string { return p.Type }

// Arbitrary is any value.
type Arbitrary struct{ BaseSchema }

// Accept implements Schema.
func (a *Arbitrary) Accept(v SchemaVisitor) {
	if any, ok := v.(SchemaVisitorArbitrary); ok {
		any.VisitArbitrary(a)
	}
}

// GetName implements Schema.
func (a *Arbitrary) GetName() string { return "Arbitrary value" }

// Reference refers to another schema.
type Reference interface {
	Schema
	// Reference returns the name.
	Reference() string
	// SubSchema returns the schema.
	SubSchema() Schema
}
