// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// Field describes a field of a ControllerSpec and its flag.
type Field struct {
	// Path is the path of the field. In a Reconciler, it is below spec.
	Path string
	// Flag is the name of the flag, and Short its letter. Both are empty if there is none.
	Flag, Short string
	// Help describes the field.
	Help string
	// Type is the type of the flag, if it differs from the type of the field.
	Type string
	// Implied is the value of a flag that is given without a value.
	Implied string
	// Extensions are the extensions of files that the field names.
	Extensions []string
	// Words are the values for completion.
	Words []string
	// Meaning maps values of the flag to those of the field, if they differ.
	Meaning map[string]string
}

// Fields are the fields that a file of controllers may have, in the order of the flags.
var Fields = []Field{
	{Path: "module.file", Extensions: []string{"wasm", "gz"}, Help: "Run the module in this `file`, which is relative to this one"},
	{Path: "module.image", Help: "Run the module of a registry: HOST/REPOSITORY:TAG, @DIGEST, or both"},
	{Path: "for", Flag: "for", Help: "Reconcile this `kind`, in any form that kubectl accepts (default: from the manifest)"},
	{Path: "owns", Flag: "owns", Help: "Reconcile the owner of objects of this `kind` when they change; repeatable (default: from the manifest)"},
	{Path: "namespaces", Flag: "namespace", Short: "n", Type: typeCSV, Help: "Watch only these `namespaces`; without --grant, also limit the module to them; repeatable"},
	{Path: "allNamespaces", Flag: "all-namespaces", Short: "A", Help: "Watch all namespaces, even if the manifest names some (default if it names none)"},
	{Path: "selector", Flag: "selector", Short: "l", Help: "Reconcile only objects that match this label `selector`"},
	{Path: "fieldSelector", Flag: "field-selector", Help: "Reconcile only objects that match this field `selector`"},
	{Path: "predicates", Flag: "predicate", Help: "Ignore changes that match none of these `predicates`, for example generation; repeatable (default: from the manifest)"},
	{Path: "resync", Flag: "resync", Help: "Reconcile all objects at this interval, at low priority (default: never)"},
	{Path: "schedule", Flag: "schedule", Help: "Reconcile all objects on this `cron` schedule; repeatable"},
	{Path: "triggerOn.signal", Flag: "trigger-on-signal", Help: "Reconcile all objects on this `signal`: USR1 or USR2"},
	{Path: "triggerOn.stdin", Flag: "trigger-on-stdin", Help: `Reconcile the objects named on stdin, one [NAMESPACE/]NAME per line, or "*" for all`},
	{Path: "debounce.quiet", Flag: "debounce", Help: "Wait until an object has not been triggered for this long"},
	{Path: "debounce.max", Flag: "debounce-max", Help: "Delay a reconcile by at most this long when debouncing (default: 10 times --debounce)"},
	{Path: "concurrency", Flag: "concurrency", Help: "Reconcile at most this many objects at a time (default: from the manifest, or 4)"},
	{Path: "limits.timeout", Flag: "timeout", Type: typeDuration, Help: "Limit the duration of one reconcile; the manifest can lower it (default 30s)"},
	{Path: "limits.memory", Flag: "memory", Help: "Limit the memory of one module instance, for example 64Mi; the manifest can lower it (default 256Mi)"},
	{Path: "limits.fuel", Flag: "fuel", Help: "Limit the fuel of one reconcile, about one unit per instruction, for example 500M; the manifest can lower it (default: no limit)"},
	{Path: "limits.fuel-rate", Flag: "fuel-rate", Help: "Limit the fuel that the module uses per second, by slowing it down (default: no limit)"},
	{Path: "limits", Flag: "limit", Words: limitWords(), Help: "Set a limit of the module as name=value, for example api_rate=50; repeatable (names and defaults: docs/limits.md)"},
	{Path: "isolate", Flag: "isolate", Implied: v1alpha1.IsolateAlone, Help: "Run the module in a separate process, shared with modules of the same `class`; without a class, in a process of its own"},
	{Path: "memo", Flag: "memo", Help: "Skip a run if nothing that the last run read has changed, for modules that depend on nothing else: off, memory, or a `directory` to remember the reads across restarts"},
	{Path: "history", Flag: "history", Help: "Keep a history of runs of this `size` for wasmctl explain and top; 0 turns it off"},
	{Path: "config", Flag: "config", Help: "Set a setting of the module as key=value; repeatable"},
	{Path: "configFile", Flag: "config-file", Extensions: yamlFiles, Help: "Read settings of the module from this YAML `file`, and again whenever it changes; --config takes precedence"},
	{Path: "name", Flag: "name", Help: "Name the controller (default: from the manifest, or from the file name)"},
	{Path: "module.controller", Flag: "controller", Help: "Run this `controller` of a module that has several (default: the one of --name, or all)"},
	{Path: "drainTimeout", Flag: "drain-timeout", Help: "Wait this long for running reconciles after the first signal (default 30s)"},
	{Path: "shardBy", Flag: "shard-by", Words: []string{v1alpha1.ShardByUID, v1alpha1.ShardByNamespace}, Help: "With --shards: split the objects by their uid or their namespace; the first replica decides, and the others follow (default: depends on the module, see wasmctl inspect)"},
	{Path: "module.watch", Flag: "watch", Help: "Swap in the module when its file changes"},
	{Path: "module.follow", Flag: "follow", Help: "Resolve the module's tag again at this interval, and swap in a new module (default: never)"},
	{Path: "rollout.probation", Flag: "probation", Help: "Compare a new module with its predecessor for this long, and roll back if it does worse; 0 turns it off"},
	{Path: "rollout.autoRollback", Help: "Restore the predecessor of a module that does worse; false is a probation of 0s"},
	{Path: "rollout.reconcile", Flag: "reconcile-on-swap", Help: "Reconcile these `objects` after a swap, at low priority: all, none, or changed (only those that the swap can affect)"},
	{Path: "rollout.canary.percent", Flag: "canary", Type: typeText, Help: "Run a new module as a canary on this `percentage` of the objects first, for example 10% (default: no canary)"},
	{Path: "rollout.canary.namespaces", Flag: "canary-namespace", Type: typeCSV, Help: "Run the canary on objects in these `namespaces`; repeatable"},
	{Path: "rollout.canary.selector", Flag: "canary-selector", Help: "Run the canary on objects that match this label `selector`"},
	{Path: "rollout.canary.time", Flag: "canary-time", Help: "Promote the canary after this long unless it does worse; 0 waits for wasmctl promote"},
	{Path: "rollout.allowMoreRights", Flag: "allow-more-rights", Help: "Allow a new module capabilities that the first module does not have"},
	{Path: "adoptManagers", Flag: "adopt-manager", Help: "Take over the fields that this field `manager` owns in declared children and status, for example that of an operator that the module replaces; repeatable"},
	{Path: "grantFile", Flag: "grant", Extensions: yamlFiles, Help: "Grant the module only the capabilities in this YAML `file` (docs/capabilities.md)"},
	{Path: "grant.manifest", Flag: "grant-manifest", Help: "Grant the module everything that its manifest requests (default with --dev)"},
	{Path: "grant.capabilities", Help: "Grant the module only these capabilities, as in a manifest (docs/capabilities.md)"},
	{Path: "grant.finalizers", Help: "Names of finalizers, beyond those under the API group of the reconciled kind, that the module may have"},
	{Path: "grant.digests", Help: "Digests of the modules that the grant is for (default: all)"},
	{Path: "grant.signers", Help: "Fingerprints of the keys whose modules the grant is for (default: unsigned modules too)"},
	{Path: "as", Flag: "as", Help: "Impersonate this `user` for the module's requests and watches: " + v1alpha1.ServiceAccountUser + "NAMESPACE:NAME"},
	{Path: "auditFile", Flag: "audit", Help: "Allow every request, and write the minimal grant for what the module did to this `file`"},
	{
		Path: "mode", Flag: "dry-run", Implied: "server", Meaning: map[string]string{"server": string(v1alpha1.ModeDryRun), "client": string(v1alpha1.ModeDryRunClient)},
		Words: []string{"server", "client"}, Help: "Print writes instead of making them; `mode` server sends them with dryRun=All, client sends nothing",
	},
}

// Types of flags that differ from the types of their fields.
const (
	typeCSV      = "csv"
	typeText     = "text"
	typeDuration = "duration"
)

var yamlFiles = []string{"yaml", "yml"}

// limitWords returns the names of limits without a flag of their own, for completion.
func limitWords() (words []string) {
	for _, name := range v1alpha1.LimitNames() {
		if !slices.Contains([]string{"memory", "timeout", "fuel", v1alpha1.LimitFuelRate}, name) {
			words = append(words, name+"=")
		}
	}
	return words
}

// FlagOf returns the flag of the field with this path. If only a field above it has a flag, rest is the
// remaining part of the path.
func FlagOf(path string) (flag, rest string) {
	for path != "" {
		for i := range Fields {
			if Fields[i].Path == path && Fields[i].Flag != "" {
				return "--" + Fields[i].Flag, strings.TrimPrefix(rest, ".")
			}
		}
		i := strings.LastIndexAny(path, ".[")
		path, rest = path[:max(i, 0)], path[max(i, 0):]+rest
	}
	return "", rest
}

// Validate validates a spec from flags. Its errors name the flags.
func Validate(s *v1alpha1.ControllerSpec) error {
	return v1alpha1.Errors(s.Validate(nil), func(path string) string {
		flag, rest := FlagOf(path)
		return strings.TrimSpace(flag + " " + rest)
	})
}

// set sets the field to a value in the form of JSON.
func (f *Field) set(s *v1alpha1.ControllerSpec, value any) error {
	for _, key := range slices.Backward(strings.Split(f.Path, ".")) {
		value = map[string]any{key: value}
	}
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, s)
}

// get returns the value of the field in the form of JSON, or nil if it is empty.
func (f *Field) get(s *v1alpha1.ControllerSpec) any {
	content, err := json.Marshal(s)
	var value any
	if err == nil {
		err = json.Unmarshal(content, &value)
	}
	for key := range strings.SplitSeq(f.Path, ".") {
		fields, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

// typeOf returns the Go type of the field, or nil for an entry of a map.
func (f *Field) typeOf() reflect.Type {
	t := reflect.TypeFor[v1alpha1.ControllerSpec]()
	for key := range strings.SplitSeq(f.Path, ".") {
		if t = v1alpha1.FieldsOf(t)[key]; t == nil {
			return nil
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}
