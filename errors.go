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

// Errors of this package match one of these, with errors.Is, where a caller can
// do something about them. Their texts say what.
var (
	// ErrUsage says that an option is wrong.
	ErrUsage error = failure.Usage
	// ErrModule says that a module cannot be loaded.
	ErrModule error = failure.Module
	// ErrCluster says that the API server cannot be used as configured.
	ErrCluster error = failure.Cluster
	// ErrUnknownKind says that the API server does not have a kind, or several of
	// its name.
	ErrUnknownKind error = failure.Kind
	// ErrDenied says that a right is missing: it is not granted to the module, or the
	// API server denies it.
	ErrDenied error = failure.Denied
	// ErrNotGranted says which ErrDenied is about the grant.
	ErrNotGranted = plan.ErrNotGranted
	// ErrForced says that reconciles were interrupted by a stop.
	ErrForced error = failure.Forced
	// ErrLeaseLost says that another replica may lead now.
	ErrLeaseLost error = failure.Lost
)

// Errors of requests to a controller.
var (
	// ErrSameModule says that the module runs already.
	ErrSameModule = host.ErrSameModule
	// ErrRefused says that the module does not accept its settings.
	ErrRefused = operation.ErrRefused
	// ErrSettings says that the live module does not accept the settings that are wanted.
	ErrSettings = engine.ErrSettings
	// ErrNoCanary says that there is nothing to promote or to abort.
	ErrNoCanary = rollout.ErrNoCanary
	// ErrPreparing says that this module is being prepared already.
	ErrPreparing = engine.ErrPreparing
	// ErrShadowed says that another module shadows the live one already.
	ErrShadowed = replay.ErrShadowed
	// ErrNative says that a native reconciler has no module.
	ErrNative = engine.ErrNative
	// ErrNotRunning says that the controller is loaded, waits or has failed.
	ErrNotRunning = engine.ErrNotRunning
	// ErrStopping says that the controller or the Runtime ends.
	ErrStopping = engine.ErrStopping
	// ErrNameTaken says that another controller of the Runtime has the name.
	ErrNameTaken = errors.New("another controller has this name")
)
