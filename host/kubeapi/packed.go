// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wasmctl/wasmctl/abi"
)

// packedObject has the fields that are read from an object's msgpack. The rest is skipped.
type packedObject struct {
	APIVersion string `msgpack:"apiVersion"`
	Kind       string `msgpack:"kind"`
	Metadata   struct {
		Name            string   `msgpack:"name"`
		Namespace       string   `msgpack:"namespace"`
		UID             string   `msgpack:"uid"`
		ResourceVersion string   `msgpack:"resourceVersion"`
		Finalizers      []string `msgpack:"finalizers"`
	} `msgpack:"metadata"`
}

// unpack reads an object's msgpack.
func unpack(object []byte) (*packedObject, error) {
	var p packedObject
	if err := msgpack.Unmarshal(object, &p); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return &p, nil
}

func (p *packedObject) key() abi.Key {
	return abi.Key{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}
}
