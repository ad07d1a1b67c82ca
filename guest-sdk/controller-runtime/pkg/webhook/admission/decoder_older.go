//go:build wasmctl_before_018

package admission

import "k8s.io/apimachinery/pkg/runtime"

// Decoder reads the object of a request.
type Decoder struct{ decoder }

// NewDecoder returns a decoder of JSON.
func NewDecoder(*runtime.Scheme) *Decoder { return &Decoder{} }
