package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/runtime/probation"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// What --memory may be: a page of WebAssembly, up to all that it can address.
const (
	minMemory = 64 << 10
	maxMemory = 4 << 30
)

// runOptions are the flags of run: those of the process, and those of its
// controller.
type runOptions struct {
	processOptions
	controllerOptions

	modules  []string         // the arguments
	filename string           // of a file of controllers, instead of arguments
	file     *controllersFile // what it says; nil without one
}

// processOptions say what the controllers of a process share.
type processOptions struct {
	workers      int
	memoryBudget string
	budgetBytes  int64 // memoryBudget, parsed by validate

	compile compileOptions
	leader  leaderOptions
	http    httpOptions

	kubeconfig string
	context    string
	dev        bool
	devData    string
	cacheDir   string
	socket     string

	otlpEndpoint string

	logFormat string
	verbosity int

	streams    streams
	showWrites bool // print what runs write; no flag
}

// controllerOptions say what one controller is. Where nothing is said, a field
// is zero and the module's manifest decides, and then a default.
type controllerOptions struct {
	module string
	name   string

	forKind       string
	owns          []string
	namespaces    []string
	allNamespaces bool
	selector      string
	fieldSelector string
	predicates    []string

	resync      time.Duration
	schedule    []string
	onSignal    string
	onStdin     bool
	debounce    time.Duration
	debounceMax time.Duration

	concurrency int
	timeout     time.Duration
	memory      string
	memoryBytes int64 // memory, parsed by validate
	config      map[string]string
	configFile  string
	drain       time.Duration

	watch           bool          // swap the module when its file changes
	probation       time.Duration // of a module that was swapped in; 0 is none
	reconcileOnSwap string        // reconcileAll, reconcileNone or reconcileChanged; "" is all
	canary          canaryOptions // of modules that are swapped in
	tried           canaryHow     // canary, parsed by validate
	allowMoreRights bool
	rights          rightsOptions

	history      string // of runs, a size
	historyBytes int64  // history, parsed by validate

	cpu   cpuOptions
	limit limitOptions
}

func (o *runOptions) bind(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&o.filename, "filename", "f", "", "YAML file of controllers, instead of modules as arguments; read again when it changes")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	o.controllerOptions.bind(cmd)
	o.processOptions.bind(cmd)
}

func (o *controllerOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.forKind, "for", "", "kind to reconcile, in any form that kubectl takes (default: the manifest's)")
	f.StringArrayVar(&o.owns, "owns", nil, "kind whose owner is reconciled when it changes; may be repeated (default: the manifest's)")
	f.StringSliceVarP(&o.namespaces, "namespace", "n", nil, "watch these namespaces only, and without --grant let the module act in no others; may be repeated")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "watch all namespaces, whatever the manifest says (default where it says nothing)")
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of the objects to reconcile")
	f.StringVar(&o.fieldSelector, "field-selector", "", "field selector of the objects to reconcile")
	f.StringArrayVar(&o.predicates, "predicate", nil, "hide changes of objects that are none of these, for example generation; may be repeated (default: the manifest's)")
	f.DurationVar(&o.resync, "resync", 0, "reconcile all objects this often, at low priority (default: never)")
	f.StringArrayVar(&o.schedule, "schedule", nil, "reconcile all objects at these times, as a cron expression; may be repeated")
	f.StringVar(&o.onSignal, "trigger-on-signal", "", "reconcile all objects on this signal: USR1 or USR2")
	f.BoolVar(&o.onStdin, "trigger-on-stdin", false, `reconcile the objects that stdin names, a line each: [NAMESPACE/]NAME, or "*" for all`)
	f.DurationVar(&o.debounce, "debounce", 0, "wait until an object has not been triggered for this long")
	f.DurationVar(&o.debounceMax, "debounce-max", 0, "longest that --debounce may put a reconcile off (default: ten times --debounce)")
	f.IntVar(&o.concurrency, "concurrency", 0, "objects reconciled at a time (default: the manifest's, else 4)")
	f.DurationVar(&o.timeout, "timeout", 0, "longest time of one reconcile; the manifest may say less (default 30s)")
	f.StringVar(&o.memory, "memory", "", "memory of one guest instance, for example 64Mi; the manifest may say less (default 256Mi)")
	o.cpu.bind(f)
	o.limit.bind(cmd)
	f.StringVar(&o.history, "history", "1Mi", "memory for what wasmctl explain and top show of the last runs; 0 is none")
	f.StringToStringVar(&o.config, "config", nil, "setting for the module as key=value; may be repeated")
	f.StringVar(&o.configFile, "config-file", "", "YAML file of settings for the module, under those of --config; a change is given to the module at once")
	f.StringVar(&o.name, "name", "", "name of the controller (default: the manifest's, else the file's)")
	f.DurationVar(&o.drain, "drain-timeout", 0, "how long running reconciles may go on after the first signal (default 30s)")
	f.BoolVar(&o.watch, "watch", true, "swap the module in when its file changes")
	f.DurationVar(&o.probation, "probation", probation.DefaultTime, "how long a module that was swapped in must do no worse than the one before, which else takes over again; 0 does not look")
	f.StringVar(&o.reconcileOnSwap, "reconcile-on-swap", reconcileAll, "which objects are reconciled after a swap, at low priority: all, none, or changed, those whose last result it puts in doubt")
	o.canary.bind(f, defaultCanaryTime)
	f.BoolVar(&o.allowMoreRights, "allow-more-rights", false, "let a module that is swapped in have capabilities that the first one does not have")
	o.rights.bind(cmd)
	_ = cmd.MarkFlagFilename("config-file", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("cpu", cobra.FixedCompletions([]string{"fuel", "close", "off"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *processOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.workers, "workers", 0, "objects reconciled at a time in the whole process (default: not bounded beyond --concurrency)")
	f.StringVar(&o.memoryBudget, "memory-budget", "", "memory of all guest instances together, for example 1Gi (default: not bounded)")
	o.compile.bind(f)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig")
	f.BoolVar(&o.dev, "dev", false, "use a local control plane; start it if it does not run")
	f.StringVar(&o.devData, "dev-data-dir", "", "where the local control plane keeps its data (default: in the user's cache directory)")
	f.StringVar(&o.cacheDir, "cache-dir", "", `where compiled modules are kept, "none" for nowhere; the oldest go beyond 2 GiB (default: in the user's cache directory)`)
	f.StringVar(&o.socket, "socket", "", `socket for wasmctl status, trigger and pause, "none" for none (default: in the user's runtime directory)`)
	o.leader.bind(f)
	o.http.bind(f)
	f.StringVar(&o.otlpEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry receiver for traces, OTLP over HTTP (default: $OTEL_EXPORTER_OTLP_ENDPOINT, else no traces)")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.CountVarP(&o.verbosity, "verbose", "v", "log more")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.MarkFlagDirname("dev-data-dir")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// aboutOne are the flags that say what one controller is: several are told
// apart by a file.
var aboutOne = []string{
	"name", "for", "owns", "selector", "field-selector", "predicate", "config", "config-file", "trigger-on-stdin",
}

// complete takes the arguments, reads the file of controllers, and validates.
func (o *runOptions) complete(cmd *cobra.Command, args []string) error {
	o.modules = args
	switch {
	case o.filename != "" && len(args) > 0:
		return fmt.Errorf("--filename and MODULE exclude each other: put %q into the file", args[0])
	case o.filename != "":
		return o.completeFile(cmd)
	case len(args) == 0:
		return errors.New("MODULE is missing")
	}
	for _, name := range aboutOne {
		if len(args) > 1 && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is about one controller, and there are %d: say it in a file, with wasmctl run -f", name, len(args))
		}
	}
	if len(args) > 1 && o.leader.elect && o.leader.name == "" {
		return errors.New("--leader-elect of several controllers needs --leader-elect-resource-name")
	}
	return o.validate()
}

// completeFile reads the file of controllers. Flags of the process win over
// what it says of that; flags of controllers have no place beside it.
func (o *runOptions) completeFile(cmd *cobra.Command) error {
	flags, _, _ := newFlags()
	var errs []error
	flags.Controller.VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Changed(f.Name) {
			errs = append(errs, fmt.Errorf("--%s is about a controller: with --filename, say it in the file", f.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if o.file, err = readControllers(o.filename); err != nil {
		return err
	}
	if err := o.file.read.Process.Apply(cmd.Flags()); err != nil {
		return err
	}
	if o.leader.name == "" {
		o.leader.name = o.file.leaseName()
	}
	return o.processOptions.validate()
}

// validate checks what can be checked without module and cluster, and parses
// sizes. Every problem is reported, not only the first.
func (o *runOptions) validate() error {
	return errors.Join(o.controllerOptions.validate(), o.processOptions.validate())
}

func (o *controllerOptions) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.namespaces) > 0 && o.allNamespaces {
		bad("--namespace and --all-namespaces exclude each other")
	}
	if o.concurrency < 0 || o.concurrency > runner.MaxConcurrency {
		bad("--concurrency %d: want 1 to %d", o.concurrency, runner.MaxConcurrency)
	}
	if o.timeout < 0 || o.drain < 0 || o.probation < 0 {
		bad("--timeout, --drain-timeout and --probation must not be negative")
	}
	if !slices.Contains([]string{"", reconcileAll, reconcileNone, reconcileChanged}, o.reconcileOnSwap) {
		bad("--reconcile-on-swap %q: want %s, %s or %s", o.reconcileOnSwap, reconcileAll, reconcileNone, reconcileChanged)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		bad("--selector %q: %w", o.selector, err)
	}
	if _, err := fields.ParseSelector(o.fieldSelector); err != nil {
		bad("--field-selector %q: %w", o.fieldSelector, err)
	}
	if _, err := predicate.Parse(o.predicates, predicate.Options{}); err != nil {
		bad("--predicate: %w", err)
	}
	var err error
	if o.tried, err = o.canary.parse(); err != nil {
		bad("%w", err)
	}
	if o.memoryBytes, err = parseSize(o.memory, minMemory, maxMemory); err != nil {
		bad("--memory %w", err)
	}
	if o.historyBytes, err = parseSize(o.history, 0, math.MaxInt32); err != nil {
		bad("--history %w", err)
	}
	errs = append(errs, o.rights.validate(), o.validateTriggers(), o.cpu.validate(), o.limit.validate())
	return errors.Join(errs...)
}

func (o *processOptions) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.dev && (o.kubeconfig != "" || o.context != "") {
		bad("--dev brings its own cluster: leave --kubeconfig and --context out")
	}
	if o.workers < 0 || o.workers > runner.MaxConcurrency {
		bad("--workers %d: want 1 to %d", o.workers, runner.MaxConcurrency)
	}
	if !slices.Contains(logFormats, o.logFormat) {
		bad("--log-format %q: want %s", o.logFormat, strings.Join(logFormats, " or "))
	}
	var err error
	if o.budgetBytes, err = parseSize(o.memoryBudget, minMemory, math.MaxInt64); err != nil {
		bad("--memory-budget %w", err)
	}
	return errors.Join(append(errs, o.compile.validate(), o.leader.validate(), o.http.validate())...)
}

// parseSize reads a size within bounds; "" is 0.
func parseSize(s string, least, most int64) (int64, error) {
	if s == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(s)
	switch {
	case err != nil || q.Value() < least:
		return 0, fmt.Errorf("%q: want a size of at least %s, such as 64Mi", s, byteSize(least))
	case q.Value() > most:
		return 0, fmt.Errorf("%q: want a size of at most %s, such as 64Mi", s, byteSize(most))
	}
	return q.Value(), nil
}
