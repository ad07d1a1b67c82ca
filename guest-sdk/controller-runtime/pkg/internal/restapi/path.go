// SPDX-License-Identifier: Apache-2.0

// Package restapi answers HTTP requests of the Kubernetes API by calls of the
// host, for programs that use clients of client-go in addition to the manager's
// client.
package restapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is the resource that the path of a request names.
type target struct {
	schema.GroupVersionResource
	namespace, name, subresource string
}

// parse parses a path. ok is false if the path does not name a resource.
func parse(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&t.Resource, &t.name, &t.subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return t, len(parts) <= 3
}
