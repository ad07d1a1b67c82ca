// SPDX-License-Identifier: Apache-2.0

// Package rules has the rights that a module's manifest requests, which come
// from the program's +kubebuilder:rbac markers.
package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
)

// linked has the markers that wasmctl build found, as JSON. The build sets it
// through the linker.
var linked string

// Capabilities returns the rights. There are none if the module was not built
// by wasmctl build. A manifest names each resource, so a rule for all resources
// of a group becomes one rule for each of its kinds in the scheme. bare lists
// the groups that have no kinds there.
func Capabilities(scheme *runtime.Scheme) (all []wasmctl.Capability, bare []string, err error) {
	return parse(linked, scheme)
}

func parse(text string, scheme *runtime.Scheme) (all []wasmctl.Capability, bare []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	var asked []wasmctl.Capability
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return nil, nil, fmt.Errorf("capabilities: as linked by wasmctl build: %w", err)
	}
	for _, c := range asked {
		if c.Resource != "*" {
			all = append(all, c)
			continue
		}
		n := len(all)
		if all = appendEach(all, c, scheme); len(all) == n {
			bare = append(bare, c.Group)
		}
	}
	return all, bare, nil
}

// appendEach appends a rule for each kind of the rule's group. As in
// Kubernetes, a rule for all resources includes their status. Other
// subresources are rare, and roles name them.
func appendEach(all []wasmctl.Capability, c wasmctl.Capability, scheme *runtime.Scheme) []wasmctl.Capability {
	status := map[string]bool{} // resources with a status
	for gvk, typ := range scheme.AllKnownTypes() {
		if gvk.Group != c.Group || !scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			continue // the scheme also has options and lists
		}
		resource := kinds.Resource(gvk).Resource
		_, has := typ.FieldByName("Status")
		status[resource] = status[resource] || has
	}
	n := len(all)
	for resource, has := range status {
		c.Resource = resource
		all = append(all, c)
		if has && len(c.Subresources) == 0 {
			ofStatus := c
			ofStatus.Subresources = []string{"status"}
			all = append(all, ofStatus)
		}
	}
	slices.SortFunc(all[n:], func(a, b wasmctl.Capability) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(len(a.Subresources), len(b.Subresources)))
	})
	return all
}
