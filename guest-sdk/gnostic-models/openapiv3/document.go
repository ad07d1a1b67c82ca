// Package openapi_v3 has the type of an OpenAPI document. A module reads none.
package openapi_v3

import "google.golang.org/protobuf/reflect/protoreflect"

// Document is a document that cannot be read.
type Document struct{}

// ProtoReflect implements proto.Message: of a message that holds nothing.
func (*Document) ProtoReflect() protoreflect.Message { return nil }
