// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ControllerSpec configures one controller of a process. For fields that are empty, the
// module's manifest decides, and then a default. Package wasmctl accepts it, the file of
// wasmctl run -f is a list of it, and the flags of wasmctl run fill it.
type ControllerSpec struct {
	// Name is the name of the controller (default: from the manifest, or from the module's
	// file).
	Name string `json:"name,omitempty"`
	// Module is the origin of the module.
	Module ControllerModule `json:"module,omitzero"`
	// Namespaces are the watched namespaces. Without a grant's rules, the module may act
	// only in these (default: those of the manifest, or all).
	Namespaces []string `json:"namespaces,omitempty"`
	// AllNamespaces watches all namespaces, regardless of the manifest.
	AllNamespaces bool `json:"allNamespaces,omitempty"`

	CommonSpec `json:",inline"`

	// Debounce delays the reconcile of an object that keeps changing.
	Debounce Debounce `json:"debounce,omitzero"`
	// TriggerOn names events of the process that lead to reconciles.
	TriggerOn TriggerOn `json:"triggerOn,omitzero"`

	HostSpec `json:",inline"`
}

// ControllerModule is a module in a file or in a registry. As text it is the path of the
// file, or oci:// and the image.
type ControllerModule struct {
	ModuleSource `json:",inline"`

	// File is the path of the module.
	File string `json:"file,omitempty"`
	// Watch swaps in the module when its file changes (default: true).
	Watch *bool `json:"watch,omitempty"`
}

// CommonSpec is the part of a ControllerSpec that Reconcilers also have. It names no
// resources of the machine that runs the module: no file, user or process.
type CommonSpec struct {
	// For is the kind to reconcile (default: from the manifest).
	For *Kind `json:"for,omitempty"`
	// Owns are kinds whose changes trigger a reconcile of their owner (default: from the
	// manifest).
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Owns []Kind `json:"owns,omitempty"`
	// Selector selects the objects to reconcile by labels, and FieldSelector by fields.
	Selector *Selector `json:"selector,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Predicates filter out changes that none of them matches, for example generation.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Predicates []string `json:"predicates,omitempty"`
	// Schedule reconciles all objects at the times of these cron expressions, and Resync at
	// this interval.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Schedule []string `json:"schedule,omitempty"`
	Resync   Duration `json:"resync,omitempty"`

	// Config are settings of the module: strings, numbers, true or false.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Config Config `json:"config,omitempty"`
	// Grant is the set of rights of the module. Without a grant, the module may read the
	// kinds of For and Owns, and write the status of the first.
	Grant *Grant `json:"grant,omitempty"`
	// AdoptManagers are the field managers of the programs that the module replaces, for
	// example those of an operator. Declared children and status take the fields over that
	// they own: a field that is not declared is removed.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	AdoptManagers []string `json:"adoptManagers,omitempty"`
	// Limits are limits of the module, by the names of docs/limits.md: memory, timeout,
	// fuel, fuel-rate, host_calls and others. They can only lower the limits of the process
	// and of the manifest.
	Limits Limits `json:"limits,omitempty"`
	// Concurrency is the maximum number of objects that are reconciled at a time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency *int32 `json:"concurrency,omitempty"`
	// Rollout configures how another module takes over.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Mode is Enforce, DryRun or Audit. In mode Enforce, the module writes. In mode DryRun,
	// the API server reports what each write would change, but changes nothing. Audit is a
	// DryRun without a grant: the status shows the writes of the module and the
	// capabilities that they need.
	// +kubebuilder:validation:Enum=Enforce;DryRun;Audit
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`
}

// Debounce delays reconciles of objects that change repeatedly.
type Debounce struct {
	// Quiet is the time without triggers after which an object is reconciled.
	Quiet Duration `json:"quiet,omitempty"`
	// Max is the maximum delay of a reconcile (default: 10 times Quiet).
	Max Duration `json:"max,omitempty"`
}

// TriggerOn names events of the process that trigger reconciles. The command handles them;
// a program that uses the library passes triggers of its own.
type TriggerOn struct {
	// Signal reconciles all objects: USR1 or USR2.
	Signal string `json:"signal,omitempty"`
	// Stdin reconciles the objects that the lines of standard input name.
	Stdin bool `json:"stdin,omitempty"`
}

// HostSpec has the resources of the machine and the process that a controller uses. A
// Reconciler does not have it, because its author must not name files, users or processes
// of the host.
type HostSpec struct {
	// As is the user to impersonate for all requests (default: that of the process).
	As string `json:"as,omitempty"`
	// ConfigFile is a YAML file with settings. Config takes precedence over it.
	ConfigFile string `json:"configFile,omitempty"`
	// GrantFile is a file of grants (docs/capabilities.md), in place of Grant.
	GrantFile string `json:"grantFile,omitempty"`
	// AuditFile receives the least grant for the requests of the module, which is allowed
	// everything in the meantime.
	AuditFile string `json:"auditFile,omitempty"`
	// Isolate names the class of modules that share a separate process: IsolateAlone
	// for a process of its own. If empty, the module runs in the process of the host.
	Isolate string `json:"isolate,omitempty"`
	// Memo stores which runs changed nothing, so that they are skipped while nothing that
	// they read changes: MemoOff, MemoMemory, or a directory. It must be used only for
	// modules whose runs depend on nothing else.
	Memo string `json:"memo,omitempty"`
	// History is the memory limit of the last runs, for example 1Mi.
	History string `json:"history,omitempty"`
	// DrainTimeout is how long running reconciles may continue after a stop.
	DrainTimeout Duration `json:"drainTimeout,omitempty"`
	// ShardBy is the field by which replicas share objects: ShardByUID or ShardByNamespace
	// (default: the best that the module allows). The first replica decides.
	ShardBy string `json:"shardBy,omitempty"`
}
