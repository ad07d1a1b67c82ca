// SPDX-License-Identifier: Apache-2.0

// Package schemaconv converts schemas. A module has no schemas.
package schemaconv

import (
	"errors"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var errNone = errors.New("kube-openapi: a module has no OpenAPI schemas")

// ToSchema returns an error.
func ToSchema(proto.Models) (*schema.Schema, error) { return nil, errNone }

// ToSchemaWithPreserveUnknownFields returns an error.
func ToSchemaWithPreserveUnknownFields(proto.Models, bool) (*schema.Schema, error) {
	return nil, errNone
}

// ToSchemaFromOpenAPI returns an error.
func ToSchemaFromOpenAPI(map[string]*spec.Schema, bool) (*schema.Schema, error) {
	return nil, errNone
}
