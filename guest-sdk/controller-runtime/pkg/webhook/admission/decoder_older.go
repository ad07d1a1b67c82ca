// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_018

package admission

import "k8s.io/apimachinery/pkg/runtime"

// Decoder decodes the object of a request.
type Decoder struct{ decoder }

// NewDecoder returns a decoder for JSON.
func NewDecoder(*runtime.Scheme) *Decoder { return &Decoder{} }
