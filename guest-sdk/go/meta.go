// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "time"

// ObjectMeta is the metadata of an object of a struct type:
//
//	type WebApp struct {
//		APIVersion string             `json:"apiVersion"`
//		Kind       string             `json:"kind"`
//		Metadata   wasmctl.ObjectMeta `json:"metadata"`
//		Spec       WebAppSpec         `json:"spec"`
//	}
//
//	app, err := wasmctl.Decode[WebApp](obj.Value)
//
// It has the fields that reconcilers use. A decoded struct loses all fields
// that its type does not name. To change an object that other writers share,
// use Object.Set, which preserves the other fields, or server-side apply.
// Reading single fields of an Object costs a fraction of decoding the object.
type ObjectMeta struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitempty"` // zero if there is none
	DeletionTimestamp time.Time         `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
	OwnerReferences   []OwnerReference  `json:"ownerReferences,omitempty"`
}
