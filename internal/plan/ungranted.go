// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// ErrNotGranted matches the error of a module that lacks a required grant. Waiting does not
// help.
var ErrNotGranted = errors.New("not granted to the module")

func notGranted(text string) error {
	return failure.Denied.Wrap(failure.As(errors.New(text), ErrNotGranted))
}

// HowToGrant explains how to obtain a grant. A front end adds how to pass it.
const HowToGrant = "print the grant with: wasmctl grant MODULE > grant.yaml; read it, and give it to the controller, or accept all that the module requests (docs/capabilities.md)"

// ungranted returns an error that lists the missing rights that a module cannot run
// without, a finalizer that is not granted, and the optional rights. Its first line says
// what to do.
func ungranted(rules []abi.Capability, finalizer string, optional []abi.Capability) error {
	lines := append([]string{"the module requests rights that are not granted; " + HowToGrant + ". Missing:"}, rights(rules)...)
	if finalizer != "" {
		lines = append(lines, finalizer)
	}
	text := strings.Join(lines, "\n  - ")
	if len(optional) > 0 {
		text += "\n" + strings.Join(append([]string{"Not granted either, but not needed to start:"}, rights(optional)...), "\n  - ")
	}
	return notGranted(text)
}

// rights describes rules for people.
func rights(rules []abi.Capability) []string { return kubeapi.NewPolicy(rules).Describe() }
