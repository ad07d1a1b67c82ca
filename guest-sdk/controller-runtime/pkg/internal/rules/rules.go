// Package rules has the rights that a module's manifest asks for: what the
// program's +kubebuilder:rbac markers say, which are comments.
package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// linked is what wasmctl build found in the markers, as JSON. It sets it by the
// linker.
var linked string

// Capabilities returns the rights; none if the module was not built by wasmctl
// build. A manifest names each resource, so a rule for all resources of a group is one
// for each kind of it in the scheme; bare has the groups without any there.
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

// appendEach appends a rule for each kind of the rule's group. As in Kubernetes, one for all
// resources is also about their status; other subresources are rare, and roles name them.
func appendEach(all []wasmctl.Capability, c wasmctl.Capability, scheme *runtime.Scheme) []wasmctl.Capability {
	status := map[string]bool{} // by resource: it has one
	for gvk, typ := range scheme.AllKnownTypes() {
		if gvk.Group != c.Group || !scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			continue // options and lists are registered, too
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		_, has := typ.FieldByName("Status")
		status[resource.Resource] = status[resource.Resource] || has
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
