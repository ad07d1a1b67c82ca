package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/runtime/runner"
)

// What --memory may be: a page of WebAssembly, up to all that it can address.
const (
	minMemory = 64 << 10
	maxMemory = 4 << 30
)

// runOptions are the flags of run. Where a flag was not given, its field is
// zero and the module's manifest decides, and then a default.
type runOptions struct {
	module string
	name   string

	forKind       string
	owns          []string
	namespace     string
	allNamespaces bool
	selector      string
	fieldSelector string

	concurrency int
	timeout     time.Duration
	memory      string
	memoryBytes int64 // memory, parsed by validate
	config      map[string]string
	drain       time.Duration

	kubeconfig string
	context    string
	dev        bool
	devData    string
	cacheDir   string

	logFormat string
	verbosity int

	streams streams
}

func (o *runOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.forKind, "for", "", "kind to reconcile, in any form that kubectl takes (default: the manifest's)")
	f.StringArrayVar(&o.owns, "owns", nil, "kind whose owner is reconciled when it changes; may be repeated (default: the manifest's)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "watch this namespace only")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "watch all namespaces, whatever the manifest says (default where it says nothing)")
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of the objects to reconcile")
	f.StringVar(&o.fieldSelector, "field-selector", "", "field selector of the objects to reconcile")
	f.IntVar(&o.concurrency, "concurrency", 0, "objects reconciled at a time (default: the manifest's, else 4)")
	f.DurationVar(&o.timeout, "timeout", 0, "longest time of one reconcile (default: the manifest's, else 30s)")
	f.StringVar(&o.memory, "memory", "", "memory of one guest instance, for example 64Mi (default: the manifest's, else 256Mi)")
	f.StringToStringVar(&o.config, "config", nil, "setting for the module as key=value; may be repeated")
	f.StringVar(&o.name, "name", "", "name of the controller (default: the manifest's, else the file's)")
	f.DurationVar(&o.drain, "drain-timeout", 0, "how long running reconciles may go on after the first signal (default 30s)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig")
	f.BoolVar(&o.dev, "dev", false, "use a local control plane; start it if it does not run")
	f.StringVar(&o.devData, "dev-data-dir", "", "where the local control plane keeps its data (default: in the user's cache directory)")
	f.StringVar(&o.cacheDir, "cache-dir", "", `where compiled modules are kept, "none" for nowhere (default: in the user's cache directory)`)
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.CountVarP(&o.verbosity, "verbose", "v", "log more")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// validate checks what can be checked without module and cluster, and parses
// sizes. Every problem is reported, not only the first.
func (o *runOptions) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.namespace != "" && o.allNamespaces {
		bad("--namespace and --all-namespaces exclude each other")
	}
	if o.dev && (o.kubeconfig != "" || o.context != "") {
		bad("--dev brings its own cluster: leave --kubeconfig and --context out")
	}
	if o.concurrency < 0 || o.concurrency > runner.MaxConcurrency {
		bad("--concurrency %d: want 1 to %d", o.concurrency, runner.MaxConcurrency)
	}
	if o.timeout < 0 || o.drain < 0 {
		bad("--timeout and --drain-timeout must not be negative")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		bad("--selector %q: %w", o.selector, err)
	}
	if _, err := fields.ParseSelector(o.fieldSelector); err != nil {
		bad("--field-selector %q: %w", o.fieldSelector, err)
	}
	if !slices.Contains(logFormats, o.logFormat) {
		bad("--log-format %q: want %s", o.logFormat, strings.Join(logFormats, " or "))
	}
	if o.memory != "" {
		q, err := resource.ParseQuantity(o.memory)
		if err != nil || q.Value() < minMemory || q.Value() > maxMemory {
			bad("--memory %q: want a size from %s to %s, such as 64Mi", o.memory, byteSize(minMemory), byteSize(maxMemory))
		}
		o.memoryBytes = q.Value()
	}
	return errors.Join(errs...)
}
