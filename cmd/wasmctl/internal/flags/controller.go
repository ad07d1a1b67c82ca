package flags

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/guestprocess"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// What --memory may be: a page of WebAssembly, up to all that it can address.
const (
	minMemory = 64 << 10
	maxMemory = 4 << 30
)

// Controller has the flags that say what one controller is. Most are options as
// they stand; where nothing is said, the module's manifest decides, and then a
// default.
type Controller struct {
	wasmctl.ControllerOptions

	Module string // the file, or a reference
	// Config are settings of the module, under them those of ConfigFile.
	Config     map[string]string
	ConfigFile string
	// Watch swaps the module in when its file changes.
	Watch bool
	// Follow swaps in what the module's tag means, at this interval; 0 does not.
	Follow time.Duration
	Rights Rights

	resync          time.Duration
	schedule        []string
	onSignal        string
	onStdin         bool
	memory, history string // sizes
	reconcileOnSwap string
	canary          Canary // of modules that are swapped in
	fuel            fuel
	limit           limits
}

// Bind adds the flags to a command.
func (o *Controller) Bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.For, "for", "", "Reconcile this `kind`, in any form that kubectl accepts (default: from the manifest)")
	f.StringArrayVar(&o.Owns, "owns", nil, "Reconcile the owner of objects of this `kind` when they change; repeatable (default: from the manifest)")
	f.StringSliceVarP(&o.Namespaces, "namespace", "n", nil, "Watch only these `namespaces`; without --grant, also limit the module to them; repeatable")
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Watch all namespaces, whatever the manifest says (default if it says nothing)")
	f.StringVarP(&o.Selector, "selector", "l", "", "Reconcile only objects that match this label `selector`")
	f.StringVar(&o.FieldSelector, "field-selector", "", "Reconcile only objects that match this field `selector`")
	f.StringArrayVar(&o.Predicates, "predicate", nil, "Ignore changes that match none of these `predicates`, for example generation; repeatable (default: from the manifest)")
	f.DurationVar(&o.resync, "resync", 0, "Reconcile all objects at this interval, at low priority (default: never)")
	f.StringArrayVar(&o.schedule, "schedule", nil, "Reconcile all objects on this `cron` schedule; repeatable")
	f.StringVar(&o.onSignal, "trigger-on-signal", "", "Reconcile all objects on this `signal`: USR1 or USR2")
	f.BoolVar(&o.onStdin, "trigger-on-stdin", false, `Reconcile the objects named on stdin, one [NAMESPACE/]NAME per line, or "*" for all`)
	f.DurationVar(&o.Debounce.Quiet, "debounce", 0, "Wait until an object has not been triggered for this long")
	f.DurationVar(&o.Debounce.Max, "debounce-max", 0, "Delay a reconcile by at most this long when debouncing (default: 10 times --debounce)")
	f.Var((*concurrency)(&o.Concurrency), "concurrency", "Reconcile at most this many objects at a time (default: from the manifest, else 4)")
	f.DurationVar(&o.Limits.Timeout, "timeout", 0, "Limit the duration of one reconcile; the manifest can lower it (default 30s)")
	f.StringVar(&o.memory, "memory", "", "Limit the memory of one module instance, for example 64Mi; the manifest can lower it (default 256Mi)")
	o.fuel.bind(f)
	o.limit.bind(cmd)
	f.StringVar(&o.Isolate, "isolate", "", "Run the module in a separate process, shared with modules of the same `class`; without a class, in a process of its own")
	f.Lookup("isolate").NoOptDefVal = wasmctl.IsolateAlone
	BindMemo(f, &o.Memo)
	f.StringVar(&o.history, "history", "1Mi", "Keep a history of runs of this `size` for wasmctl explain and top; 0 turns it off")
	f.StringToStringVar(&o.Config, "config", nil, "Set a setting of the module as key=value; repeatable")
	f.StringVar(&o.ConfigFile, "config-file", "", "Read settings of the module from this YAML `file`, and again whenever it changes; --config takes precedence")
	f.StringVar(&o.Name, "name", "", "Name the controller (default: from the manifest, else from the file name)")
	f.StringVar(&o.Controller, "controller", "", "Run this `controller` of a module that has several (default: that of --name, else all)")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", 0, "Wait this long for running reconciles after the first signal (default 30s)")
	f.StringVar(&o.ShardBy, "shard-by", "", "With --shards: split the objects by their uid or their namespace; the first replica of all decides, and the others follow (default: what the module allows, see wasmctl inspect)")
	f.BoolVar(&o.Watch, "watch", true, "Swap in the module when its file changes")
	f.DurationVar(&o.Follow, "follow", 0, "Ask the registry at this interval what the module's tag means, and swap in a new module (default: never)")
	f.DurationVar(&o.Probation, "probation", probation.DefaultTime, "Compare a new module with its predecessor for this long, and roll back if it does worse; 0 turns it off")
	f.StringVar(&o.reconcileOnSwap, "reconcile-on-swap", string(wasmctl.ReconcileAll), "Reconcile these `objects` after a swap, at low priority: all, none, or changed (only those that the swap can affect)")
	o.canary.Bind(f)
	f.BoolVar(&o.AllowMoreRights, "allow-more-rights", false, "Allow a new module capabilities that the first module does not have")
	o.Rights.bind(cmd)
	_ = cmd.MarkFlagFilename("config-file", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("shard-by", cobra.FixedCompletions(shardBy, cobra.ShellCompDirectiveNoFileComp))
}

// shardBy are the values of --shard-by.
var shardBy = []string{wasmctl.ShardByUID, wasmctl.ShardByNamespace}

// Validate checks what can be checked without module and cluster, and parses
// sizes. Every problem is reported, not only the first.
func (o *Controller) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Namespaces) > 0 && o.AllNamespaces {
		bad("--namespace and --all-namespaces cannot be combined")
	}
	if o.Concurrency < 0 || o.Concurrency > runner.MaxConcurrency {
		bad("--concurrency %v: want 1 to %d", (*concurrency)(&o.Concurrency), runner.MaxConcurrency)
	}
	if o.Limits.Timeout < 0 || o.DrainTimeout < 0 || o.Probation < 0 {
		bad("--timeout, --drain-timeout and --probation must not be negative")
	}
	if !slices.Contains([]string{"", string(wasmctl.ReconcileAll), string(wasmctl.ReconcileNone), string(wasmctl.ReconcileChanged)}, o.reconcileOnSwap) {
		bad("--reconcile-on-swap %q: want %s, %s or %s", o.reconcileOnSwap, string(wasmctl.ReconcileAll), string(wasmctl.ReconcileNone), string(wasmctl.ReconcileChanged))
	}
	if o.ShardBy != "" && !slices.Contains(shardBy, o.ShardBy) {
		bad("--shard-by %q: want %s or %s", o.ShardBy, shardBy[0], shardBy[1])
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		bad("--selector %q: %w", o.Selector, err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		bad("--field-selector %q: %w", o.FieldSelector, err)
	}
	if _, err := predicate.Parse(o.Predicates, predicate.Options{}); err != nil {
		bad("--predicate: %w", err)
	}
	canary, err := o.canary.Parse()
	if err != nil {
		bad("%w", err)
	}
	o.Canary = &canary
	if o.Limits.Memory, err = parseSize(o.memory, minMemory, maxMemory); err != nil {
		bad("--memory %w", err)
	}
	if err := o.CheckFollow(); err != nil {
		bad("%w", err)
	}
	if err := checkClass(o.Isolate); err != nil {
		bad("--isolate %w", err)
	}
	history, err := parseSize(o.history, 0, math.MaxInt32)
	if err != nil {
		bad("--history %w", err)
	}
	o.History = int(history)
	errs = append(errs, o.Rights.validate(), o.validateTriggers(), CheckMemo(o.Memo), o.fuel.validate(), o.limit.validate())
	return errors.Join(errs...)
}

// minFollow is the shortest interval of --follow: registries count requests.
const minFollow = time.Second

// CheckFollow checks --follow, once the module is known.
func (o *Controller) CheckFollow() error {
	switch ref, err := oci.Parse(o.Module); {
	case o.Follow == 0:
		return nil
	case o.Follow < minFollow:
		return fmt.Errorf("--follow %v: want at least %v", o.Follow, minFollow)
	case o.Module == "":
		return nil
	case !oci.IsRef(o.Module):
		return fmt.Errorf("--follow needs a module of a registry, and %q is a file: --watch follows that", o.Module)
	case err != nil:
		return err
	case ref.Pinned():
		return fmt.Errorf("--follow: %q always names the same module: remove the digest, or --follow", o.Module)
	}
	return nil
}

var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// checkClass checks the class of --isolate.
func checkClass(class string) error {
	switch {
	case class == "":
		return nil
	case !guestprocess.Supported:
		return errors.New("needs Linux")
	case !className.MatchString(class):
		return fmt.Errorf("%q: want the name of a class: lower-case letters, digits and -", class)
	}
	return nil
}

// parseSize reads a size within bounds; "" is 0.
func parseSize(s string, least, most int64) (int64, error) {
	if s == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(s)
	switch {
	case err != nil || q.Value() < least:
		return 0, fmt.Errorf("%q: want a size of at least %s, such as 64Mi", s, humanize.Bytes(least))
	case q.Value() > most:
		return 0, fmt.Errorf("%q: want a size of at most %s, such as 64Mi", s, humanize.Bytes(most))
	}
	return q.Value(), nil
}
