// SPDX-License-Identifier: Apache-2.0

// Package openapi_v3 has the type of an OpenAPI document. A module does not
// read OpenAPI documents.
package openapi_v3

import "google.golang.org/protobuf/reflect/protoreflect"

// Document represents a document. It cannot be decoded.
type Document struct{}

// ProtoReflect implements proto.Message. It returns nil.
func (*Document) ProtoReflect() protoreflect.Message { return nil }
