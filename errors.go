// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/rollout"
)

// Errors of this package match one of these, with errors.Is, if a caller can act on them.
// Their texts explain what to do.
var (
	// ErrUsage means that an option is invalid.
	ErrUsage error = failure.Usage
	// ErrModule means that a module cannot be loaded.
	ErrModule error = failure.Module
	// ErrCluster means that the API server cannot be used as configured.
	ErrCluster error = failure.Cluster
	// ErrUnknownKind means that the API server does not have a kind, or has several with
	// its name.
	ErrUnknownKind error = failure.Kind
	// ErrDenied means that a right is missing: it is not granted to the module, or the API
	// server denies it.
	ErrDenied error = failure.Denied
	// ErrNotGranted matches an ErrDenied whose cause is the grant.
	ErrNotGranted = plan.ErrNotGranted
	// ErrForced means that a stop has interrupted reconciles.
	ErrForced error = failure.Forced
	// ErrLeaseLost means that another replica may be the leader now.
	ErrLeaseLost error = failure.Lost
)

// Errors of requests to a controller.
var (
	// ErrSameModule means that the module already runs.
	ErrSameModule = host.ErrSameModule
	// ErrRefused means that the module does not accept its settings.
	ErrRefused = operation.ErrRefused
	// ErrSettings means that the live module does not accept the requested settings.
	ErrSettings = engine.ErrSettings
	// ErrNoCanary means that there is no canary to promote or to abort.
	ErrNoCanary = rollout.ErrNoCanary
	// ErrPreparing means that this module is already being prepared.
	ErrPreparing = engine.ErrPreparing
	// ErrSuperseded means that another request, such as one for other options, has replaced this one while
	// its module was being prepared. It is no verdict about the module.
	ErrSuperseded = engine.ErrSuperseded
	// ErrShadowed means that another module already shadows the live one.
	ErrShadowed = replay.ErrShadowed
	// ErrNative means that a native reconciler has no module.
	ErrNative = engine.ErrNative
	// ErrNotRunning means that the controller is still loading, waits or has failed.
	ErrNotRunning = engine.ErrNotRunning
	// ErrStopping means that the controller or the Runtime is ending.
	ErrStopping = engine.ErrStopping
	// ErrNameTaken means that another controller of the Runtime has the name.
	ErrNameTaken = errors.New("another controller has this name")
)
