// Package rules has the rights that a module's manifest asks for: what the
// program's +kubebuilder:rbac markers say, which are comments.
package rules

import (
	"encoding/json"
	"fmt"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// linked is what wasmctl build found in the markers, as JSON. It sets it by the
// linker.
var linked string

// Capabilities returns the rights; none if the module was not built by wasmctl
// build.
func Capabilities() ([]wasmctl.Capability, error) { return parse(linked) }

func parse(text string) ([]wasmctl.Capability, error) {
	if text == "" {
		return nil, nil
	}
	var all []wasmctl.Capability
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("capabilities: as linked by wasmctl build: %w", err)
	}
	return all, nil
}
