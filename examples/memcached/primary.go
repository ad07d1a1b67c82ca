// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// The annotations are those of the Operator SDK, for owners that an owner reference cannot name,
// such as those in another namespace.
const (
	primaryType = "operator-sdk/primary-resource-type" // "Memcached.cache.example.com"
	primaryName = "operator-sdk/primary-resource"      // "namespace/name"
)

// primaryOf maps a Deployment to the Memcached that its annotations name, both before and after the
// change: if an annotation is edited, both the old and the new Memcached are affected.
func primaryOf(_ *wasmctl.Context, event wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	keys := []wasmctl.ObjectKey{}
	for _, deployment := range []wasmctl.Object{event.Old, event.New} {
		if key, ok := primary(deployment); ok && (len(keys) == 0 || keys[0] != key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// primary returns the Memcached that a Deployment names.
func primary(deployment wasmctl.Object) (wasmctl.ObjectKey, bool) {
	if deployment.Annotation(primaryType) != kind+"."+group {
		return wasmctl.ObjectKey{}, false
	}
	namespace, name, ok := strings.Cut(deployment.Annotation(primaryName), "/")
	return wasmctl.ObjectKey{Namespace: namespace, Name: name}, ok
}
