// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// decoder decodes JSON.
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
	u, ok := into.(runtime.Unstructured)
	if !ok {
		return json.Unmarshal(rawObj.Raw, into)
	}
	content := map[string]any{}
	if err := json.Unmarshal(rawObj.Raw, &content); err != nil {
		return err
	}
	u.SetUnstructuredContent(content)
	return nil
}
