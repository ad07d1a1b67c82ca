package admission

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Decoder reads the object of a request.
type Decoder interface {
	// Decode reads the object of req.
	Decode(req Request, into runtime.Object) error
	// DecodeRaw reads an object.
	DecodeRaw(rawObj runtime.RawExtension, into runtime.Object) error
}

// NewDecoder returns a decoder of JSON.
func NewDecoder(*runtime.Scheme) Decoder { return decoder{} }

type decoder struct{}

// Decode implements Decoder.
func (d decoder) Decode(req Request, into runtime.Object) error {
	return d.DecodeRaw(req.Object, into)
}

// DecodeRaw implements Decoder.
func (decoder) DecodeRaw(rawObj runtime.RawExtension, into runtime.Object) error {
	if len(rawObj.Raw) == 0 {
		return errors.New("request: has no object")
	}
	return json.Unmarshal(rawObj.Raw, into)
}
