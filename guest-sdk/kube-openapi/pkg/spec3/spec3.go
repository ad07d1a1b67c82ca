// SPDX-License-Identifier: Apache-2.0

// Package spec3 has the type of an OpenAPI document. A module does not read
// OpenAPI documents.
package spec3

import (
	"errors"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OpenAPI is a document.
type OpenAPI struct{ Components *Components }

// Components are the parts of a document.
type Components struct{ Schemas map[string]*spec.Schema }

// UnmarshalJSON returns an error, because a module does not read OpenAPI
// documents.
func (*OpenAPI) UnmarshalJSON([]byte) error {
	return errors.New("kube-openapi: a module reads no OpenAPI documents")
}
