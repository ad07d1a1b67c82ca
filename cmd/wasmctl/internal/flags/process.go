// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/sysmemory"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// Process has the flags that apply to all controllers of a process.
type Process struct {
	workers      int
	memoryBudget string
	budgetBytes  int64 // memoryBudget, parsed by validate
	tenantMemory string
	tenants      bool  // BindTenants was called
	tenantBytes  int64 // tenantMemory, parsed by validate
	compression  string

	Compile Compile
	Leader  Leader
	// Registry reads the modules.
	Registry Registry
	HTTP     HTTP
	Webhooks Webhooks

	Kubeconfig Kubeconfig
	// Dev uses a local control plane, which stores its data in DevData.
	Dev     bool
	DevData string
	// CacheDir is the value of --cache-dir: see the function CacheDir.
	CacheDir string
	stateDir string
	// Socket is the socket for wasmctl status and other commands. If empty, it is the default one. The
	// value "none" turns it off.
	Socket string

	// Harden is the mode of hardening, which begins after the start.
	Harden harden.Mode

	// OTLPEndpoint is the URL of a receiver of traces.
	OTLPEndpoint string

	LogFormat string
	Verbosity int
}

// Values of --cache-compression.
const (
	compressionOff = "off"
	compressionOn  = "on"
)

// Bind adds the flags to a command.
func (o *Process) Bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.workers, "workers", 0, "Reconcile at most this many objects at a time across all controllers (default: no limit except --concurrency)")
	f.StringVar(&o.memoryBudget, "memory-budget", "", `Limit the memory of all modules together, for example 1Gi; "none" is no limit (default: half of the container's or machine's memory)`)
	f.StringVar(&o.compression, "cache-compression", compressionOff, "Compress cached objects that were not read for a minute, except Secrets: off or on")
	o.Compile.bind(f)
	o.Kubeconfig.Bind(cmd, "Use this kubeconfig `file` (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	f.BoolVar(&o.Dev, "dev", false, "Use a local control plane, and start it if needed")
	f.StringVar(&o.DevData, "dev-data-dir", "", "Keep the data of the local control plane in this `directory` (default: in the user's cache directory)")
	f.StringVar(&o.CacheDir, "cache-dir", "", `Cache compiled modules in this directory, at most 2 GiB; "none" turns it off (default: in the user's cache directory)`)
	f.StringVar(&o.stateDir, "state-dir", "", "Record the live and the rolled-back modules in this `directory`, for the next start (default: no record; replicas record them in their Lease)")
	f.StringVar(&o.Socket, "socket", "", `Listen on this socket for commands such as wasmctl status; "none" turns it off (default: in the user's runtime directory)`)
	f.StringVar((*string)(&o.Harden), "harden", string(harden.Auto), "Give up system calls and privileges that the process does not need: auto, off, or required (an error if the system lacks support)")
	o.Leader.bind(f)
	o.HTTP.bind(f)
	o.Webhooks.bind(f)
	o.Registry.Bind(f)
	o.Registry.BindVerify(f)
	f.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "", "Send traces to this OTLP/HTTP `URL` (default: $OTEL_EXPORTER_OTLP_ENDPOINT, or no traces)")
	f.StringVar(&o.LogFormat, "log-format", "text", "Log in this `format`: text or json")
	f.CountVarP(&o.Verbosity, "verbose", "v", "Log more; repeat for even more")
	_ = cmd.MarkFlagDirname("dev-data-dir")
	_ = cmd.MarkFlagDirname("state-dir")
	_ = cmd.RegisterFlagCompletionFunc("cache-compression", cobra.FixedCompletions([]string{compressionOff, compressionOn}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logging.Formats, cobra.ShellCompDirectiveNoFileComp))
}

// BindTenants adds the flags that apply to each tenant of a process.
func (o *Process) BindTenants(cmd *cobra.Command) {
	o.tenants = true
	cmd.Flags().StringVar(&o.tenantMemory, "tenant-memory", "", `Limit the memory of each tenant, for example 256Mi (default: half of --memory-budget)`)
}

// Fits returns an error if there are more controllers than workers. Each controller has a worker of its
// own, so the last one would never run.
func (o *Process) Fits(controllers int) error {
	if o.workers == 0 || controllers <= o.workers {
		return nil
	}
	return fmt.Errorf("--workers %d is less than the %d controllers: each needs one", o.workers, controllers)
}

// Validate checks the flags and parses sizes.
func (o *Process) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Dev && o.Kubeconfig != (Kubeconfig{}) {
		bad("--dev uses its own cluster: omit --kubeconfig and --context")
	}
	if o.workers < 0 || o.workers > runner.MaxConcurrency {
		bad("--workers %d: want 1 to %d", o.workers, runner.MaxConcurrency)
	}
	if !slices.Contains(logging.Formats, o.LogFormat) {
		bad("--log-format %q: want %s", o.LogFormat, strings.Join(logging.Formats, " or "))
	}
	if o.compression != compressionOff && o.compression != compressionOn {
		bad("--cache-compression %q: want %s or %s", o.compression, compressionOff, compressionOn)
	}
	if !slices.Contains(harden.Modes, o.Harden) {
		bad("--harden %q: want auto, off or required", o.Harden)
	}
	var err error
	if o.budgetBytes, err = parseBudget(o.memoryBudget, sysmemory.Available()); err != nil {
		bad("--memory-budget %w", err)
	}
	if o.tenantBytes, err = parseSize(o.tenantMemory, v1alpha1.MinMemory, math.MaxInt64); err != nil {
		bad("--tenant-memory %w", err)
	}
	if o.tenants && o.tenantMemory == "" {
		o.tenantBytes = o.budgetBytes / 2
	}
	return errors.Join(append(errs, o.Compile.validate(), o.Leader.validate(), o.HTTP.validate(), o.Webhooks.validate())...)
}

// parseBudget parses the memory limit of all modules together. It returns 0 for no limit. The default is
// half of the available memory: the rest is for watches, caches and Go itself.
func parseBudget(s string, available int64) (int64, error) {
	switch {
	case s == "none":
		return 0, nil
	case s == "" && available > 0:
		return max(available/2, v1alpha1.MinMemory), nil
	}
	return parseSize(s, v1alpha1.MinMemory, math.MaxInt64)
}

// parseSize parses a size within bounds. An empty text is 0.
func parseSize(s string, least, most int64) (int64, error) {
	size, want := v1alpha1.ParseSize(s, least, most)
	if want != "" {
		return 0, fmt.Errorf("%q: %s", s, want)
	}
	return size, nil
}
