package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// told is what wasmctl build was told about main.
var told struct {
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Without []string          `json:"without"`
	Objects []map[string]any  `json:"objects"`
}

// enableWebhooks is what the main.go of kubebuilder asks whether it shall register
// webhooks. Nobody would serve them.
const enableWebhooks = "ENABLE_WEBHOOKS"

// prepare gives main its arguments and its environment. It runs before packages of
// the program are initialised that read them.
func prepare(linked string) error {
	if err := os.Setenv(enableWebhooks, "false"); err != nil {
		return err
	}
	text, err := base64.RawURLEncoding.DecodeString(linked)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return fmt.Errorf("main: what wasmctl build linked: %w", err)
	}
	for name, value := range told.Env {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("env[%s]: %w", name, err)
		}
	}
	os.Args = append(os.Args[:1:1], told.Args...)
	return nil
}

// What the build may have been told to leave out: it is logged then, and is an
// error else.
const (
	Webhooks  = "webhooks"
	Runnables = "runnables"
	Sources   = "sources"
	Writes    = "writes"
)

// Without reports whether the program may have something that has no effect.
func Without(what string) bool { return slices.Contains(told.Without, what) }

// Objects are what main sees before it starts the manager.
func Objects() []map[string]any { return told.Objects }

// LeaveOut is what to do about it in the program's build.
func LeaveOut(what string) string {
	return "to build the program without it, use wasmctl build --without " + what
}

// NoEvents says what to do about a source of events that a module cannot have.
const NoEvents = "a module gets its events from the host only; watch a kind with Watches, or return RequeueAfter"

// NoWrites says what to do about writes of main.
var NoWrites = "main writes before the manager starts, when a module has no API server: do this in Reconcile, or apply the object " +
	"with the operator's other files; " + LeaveOut(Writes)

// NoWebhooks says what to do about webhooks in a program.
var NoWebhooks = "a module serves no webhooks: do not set them up where ENABLE_WEBHOOKS is \"false\", as it is in a module, " +
	"or pass the program's own flag after \"--\" of wasmctl build; " + LeaveOut(Webhooks)
