// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// told has the settings that wasmctl build was given for main.
var told = struct {
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Without []string          `json:"without"`
	Objects []map[string]any  `json:"objects"`
	Hooks   *[]Hook           `json:"webhooks"`
}{Hooks: &Hooks}

// Hooks are the settings of the project's webhooks.
var Hooks []Hook

// Hook has the settings of a webhook: its type, "validate" or "default", and
// the fields that a webhook configuration has.
type Hook struct {
	wasmctl.Webhook

	Type string `json:"type"`
}

// enableWebhooks is the variable from which the main.go of kubebuilder decides
// whether to register webhooks.
const enableWebhooks = "ENABLE_WEBHOOKS"

// prepare sets the arguments and the environment of main. It runs before the
// initialization of packages that read them.
func prepare(linked string) error {
	text, err := base64.RawURLEncoding.DecodeString(linked)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return fmt.Errorf("main: settings of wasmctl build: %w", err)
	}
	if Without(Webhooks) {
		if err := os.Setenv(enableWebhooks, "false"); err != nil {
			return err
		}
	}
	for name, value := range told.Env {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("env[%s]: %w", name, err)
		}
	}
	os.Args = append(os.Args[:1:1], told.Args...)
	return nil
}

// The features that a build can leave out. If so, their use is only logged.
// Otherwise, webhooks are served and runnables run, and the use of the others is
// an error.
const (
	Webhooks  = "webhooks"
	Runnables = "runnables"
	Sources   = "sources"
	Writes    = "writes"
)

// Without reports whether the build leaves out the feature.
func Without(what string) bool { return slices.Contains(told.Without, what) }

// Objects returns the objects that main can read before it starts the manager.
func Objects() []map[string]any { return told.Objects }

// LeaveOut returns the hint how to leave out the feature in a build.
func LeaveOut(what string) string {
	return "to build the program without it, use wasmctl build --without " + what
}

// NoEvents is the hint for a source of events that a module cannot have.
const NoEvents = "a module gets its events only from the host; watch a kind with Watches, or return RequeueAfter"

// NoWrites is the hint for writes of main.
var NoWrites = "main writes before the manager starts, when a module has no API server: do this in Reconcile, or apply the object " +
	"with the operator's other files; " + LeaveOut(Writes)
