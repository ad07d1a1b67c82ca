// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// Notes store a text for each key, of at most some KiB. The text of a key that was not set is
// empty.
type Notes interface {
	Note(ctx context.Context, key string) (string, error)
	SetNote(ctx context.Context, key, value string) error
}

// Write is a write that the API server has answered, with the changes that it made.
type Write struct {
	history.Operation

	// Run is the object whose run wrote. It is empty for a write of the host.
	Run abi.Key
	// Event is the text of an event that a dry run would have recorded; Operation is then
	// empty.
	Event string
	// ID distinguishes writes to the same object, such as those of several patches.
	ID string
}

// Canary selects the objects on which a module is tried first, and for how long. Objects must
// match all fields that are set.
type Canary struct {
	// Share is the share of the objects, 0 to 1; 0 selects all that match the other fields.
	Share float64
	// Namespaces are those of the objects; if empty, all match.
	Namespaces []string
	// Selector matches their labels; if nil, all match.
	Selector labels.Selector
	// Time is how long the module must do no worse than the live one before it gets all
	// objects; 0 waits for Promote or Abort.
	Time time.Duration
}

// Share returns the Canary on a share of the objects, 0 to 1, until it is promoted.
func Share(share float64) *Canary { return &Canary{Share: share} }

// SwapOptions say how a module is swapped in. The zero value follows the options of the
// controller.
type SwapOptions struct {
	// Canary, if not nil, replaces that of the controller.
	Canary *Canary
	// Force tries a module again that was rolled back.
	Force bool
	// Why is the reason, for the log.
	Why string
}

func (o *SwapOptions) rollout() rollout.SwapOptions {
	out := rollout.SwapOptions{Force: o.Force, Why: o.Why}
	if c := o.Canary; c != nil {
		out.Canary = &rollout.Canary{Config: canary.Config{Share: c.Share, Namespaces: c.Namespaces, Selector: c.Selector}, Time: c.Time}
	}
	return out
}

// Grant is what a module may do. The zero Grant is what the spec names: to watch the kinds of
// For and Owns, and to write the status of the first.
type Grant struct {
	// Manifest accepts everything that the module's manifest requests.
	Manifest bool
	// Everything allows whatever the API server allows, for an audit.
	Everything bool
	// File has the rules for this controller and for others. Path is its name for errors; it is
	// empty if there are no rules.
	File grant.File
	Path string
}

// GrantManifest accepts everything that the module's manifest requests.
var GrantManifest = Grant{Manifest: true}

// ParseGrant reads a file of grants (docs/capabilities.md). The path is for errors, which match
// ErrUsage.
func ParseGrant(path string, content []byte) (Grant, error) {
	g, err := plan.ParseGrant(path, content)
	return Grant(g), err
}

// GrantRules returns the Grant of these rules.
func GrantRules(rules ...abi.Capability) Grant {
	return Grant{File: grant.File{{Capabilities: rules}}, Path: "rules"}
}
