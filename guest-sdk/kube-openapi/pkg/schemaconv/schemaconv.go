// Package schemaconv converts schemas. In a module there are none.
package schemaconv

import (
	"errors"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var errNone = errors.New("kube-openapi: a module has no OpenAPI schemas")

// ToSchema is an error.
func ToSchema(proto.Models) (*schema.Schema, error) { return nil, errNone }

// ToSchemaWithPreserveUnknownFields is an error.
func ToSchemaWithPreserveUnknownFields(proto.Models, bool) (*schema.Schema, error) {
	return nil, errNone
}

// ToSchemaFromOpenAPI is an error.
func ToSchemaFromOpenAPI(map[string]*spec.Schema, bool) (*schema.Schema, error) {
	return nil, errNone
}
