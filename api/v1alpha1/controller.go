package v1alpha1

// ControllerSpec says what one controller of a process is. What it leaves open is as the
// module's manifest says, and then a default. Package wasmctl takes it, the file of
// wasmctl run -f is a list of it, and the flags of wasmctl run fill it.
type ControllerSpec struct {
	// Name names the controller (default: from the manifest, else from the module's file).
	Name string `json:"name,omitempty"`
	// Module is where the module comes from.
	Module ControllerModule `json:"module,omitzero"`
	// Namespaces are watched, and without a grant's rules the module may act in no
	// others (default: those of the manifest, else all).
	Namespaces []string `json:"namespaces,omitempty"`
	// AllNamespaces watches all namespaces, whatever the manifest says.
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

// CommonSpec is the part of a ControllerSpec that Reconcilers have too. It names nothing
// of the machine that runs the module: no file, no user, no process.
type CommonSpec struct {
	// For is the kind to reconcile (default: from the manifest).
	For *Kind `json:"for,omitempty"`
	// Owns are kinds whose owner is reconciled when they change (default: from the
	// manifest).
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Owns []Kind `json:"owns,omitempty"`
	// Selector selects the objects to reconcile by their labels, FieldSelector by
	// fields.
	Selector *Selector `json:"selector,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Predicates hide changes that none of them matches, for example generation.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Predicates []string `json:"predicates,omitempty"`
	// Schedule reconciles all objects at the times of these cron expressions, Resync
	// at this interval.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Schedule []string `json:"schedule,omitempty"`
	Resync   Duration `json:"resync,omitempty"`

	// Config are settings of the module: strings, numbers, true or false.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Config Config `json:"config,omitempty"`
	// Grant is what the module may do. Without one it may read the kinds of For and
	// Owns, and write the status of the first.
	Grant *Grant `json:"grant,omitempty"`
	// Limits are those of the module, by the names of docs/limits.md: memory, timeout,
	// fuel, fuel-rate, host_calls and others. Those of the process and of the manifest
	// stay: this lowers them.
	Limits Limits `json:"limits,omitempty"`
	// Concurrency is how many objects are reconciled at a time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency *int32 `json:"concurrency,omitempty"`
	// Rollout says how another module takes over.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Mode Enforce writes. DryRun asks the API server what each write would change,
	// and changes nothing. Audit is a DryRun without a grant: the status says what the
	// module would write, and which capabilities that takes.
	// +kubebuilder:validation:Enum=Enforce;DryRun;Audit
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`
}

// Debounce delays reconciles of objects that keep changing.
type Debounce struct {
	// Quiet is how long an object must not have been triggered before it is reconciled.
	Quiet Duration `json:"quiet,omitempty"`
	// Max is the longest delay of a reconcile (default: 10 times Quiet).
	Max Duration `json:"max,omitempty"`
}

// TriggerOn names events of the process that lead to reconciles. The command handles
// them; a program that uses the library gives it sources of its own.
type TriggerOn struct {
	// Signal reconciles all objects: USR1 or USR2.
	Signal string `json:"signal,omitempty"`
	// Stdin reconciles the objects that the lines of standard input name.
	Stdin bool `json:"stdin,omitempty"`
}

// HostSpec is what a controller takes of the machine and the process that run it. A
// Reconciler has none of it: its author must not name files, users or processes of the
// host.
type HostSpec struct {
	// As is the user to impersonate for all requests (default: that of the process).
	As string `json:"as,omitempty"`
	// ConfigFile is a YAML file with settings. Config takes precedence over it.
	ConfigFile string `json:"configFile,omitempty"`
	// GrantFile is a file of grants (docs/capabilities.md), in place of Grant.
	GrantFile string `json:"grantFile,omitempty"`
	// AuditFile receives the least grant for what the module did. It is allowed
	// everything meanwhile.
	AuditFile string `json:"auditFile,omitempty"`
	// Isolate names the class of modules that share a separate process: IsolateAlone
	// for a process of its own. If empty, the module runs in the process of the host.
	Isolate string `json:"isolate,omitempty"`
	// Memo says where runs that changed nothing are remembered, so that they are skipped
	// while nothing that they read changes: MemoOff, MemoMemory, or a directory. It is
	// right for modules whose runs depend on nothing else.
	Memo string `json:"memo,omitempty"`
	// History is the memory for the last runs, for example 1Mi.
	History string `json:"history,omitempty"`
	// DrainTimeout is how long running reconciles may go on after a stop.
	DrainTimeout Duration `json:"drainTimeout,omitempty"`
	// ShardBy is what objects are split by if replicas share them: ShardByUID or
	// ShardByNamespace (default: what the module allows). The first replica decides.
	ShardBy string `json:"shardBy,omitempty"`
}
