// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_018

package admission

import "k8s.io/apimachinery/pkg/runtime"

// Decoder decodes the object of a request.
type Decoder interface {
	// Decode decodes the object of req.
	Decode(req Request, into runtime.Object) error
	// DecodeRaw decodes an object.
	DecodeRaw(rawObj runtime.RawExtension, into runtime.Object) error
}

// NewDecoder returns a decoder for JSON.
func NewDecoder(*runtime.Scheme) Decoder { return decoder{} }
