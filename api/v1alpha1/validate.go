// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// minFollow is the minimum interval of requests to a registry, because registries limit
// requests.
const minFollow = time.Second

// maxManager is the limit of the API server on the name of a field manager, in bytes.
const maxManager = 128

// Validate returns the errors of the spec that can be found without the module and the
// cluster. The paths of fields begin at root, which may be nil.
func (s *ControllerSpec) Validate(root *field.Path) field.ErrorList {
	errs := s.CommonSpec.Validate(root)
	if len(s.Namespaces) > 0 && s.AllNamespaces {
		errs = append(errs, field.Forbidden(root.Child("allNamespaces"), "cannot be combined with namespaces"))
	}
	errs = append(errs, namespaces(root.Child("namespaces"), s.Namespaces)...)
	errs = append(errs, s.Module.validate(root.Child("module"))...)
	path := root.Child("debounce")
	errs = append(errs, duration(path.Child("quiet"), s.Debounce.Quiet)...)
	errs = append(errs, duration(path.Child("max"), s.Debounce.Max)...)
	if err := s.Debounce.Parse().Validate(); err != nil && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, string(s.Debounce.Max), err.Error()))
	}
	errs = append(errs, oneOf(root.Child("triggerOn", "signal"), s.TriggerOn.Signal, "USR1", "USR2")...)
	return append(errs, s.validate(root, &s.CommonSpec)...)
}

// Validate returns the errors of the spec that can be found without the module and the
// cluster. The paths of fields begin at root, which may be nil.
func (s *CommonSpec) Validate(root *field.Path) (errs field.ErrorList) {
	bad := func(name string, value any, err error) {
		if err != nil {
			errs = append(errs, field.Invalid(root.Child(name), value, err.Error()))
		}
	}
	if n := s.Concurrency; n != nil && (*n < 1 || *n > runner.MaxConcurrency) {
		bad("concurrency", *n, fmt.Errorf("want 1 to %d", runner.MaxConcurrency))
	}
	_, err := s.Selector.Labels()
	bad("selector", s.Selector, err)
	_, err = fields.ParseSelector(s.FieldSelector)
	bad("fieldSelector", s.FieldSelector, err)
	_, err = predicate.Parse(s.Predicates, predicate.Options{})
	bad("predicates", "", err)
	errs = append(errs, duration(root.Child("resync"), s.Resync)...)
	if d := s.Resync.Or(0); d > 0 {
		_, err := trigger.NewResync(d)
		bad("resync", string(s.Resync), err)
	}
	for _, spec := range s.Schedule {
		_, err := trigger.NewCron(spec, time.Local)
		bad("schedule", spec, err)
	}
	_, err = s.Config.Texts()
	bad("config", "", err)
	if g := s.Grant; g != nil && g.Manifest && len(g.Capabilities)+len(g.Finalizers) > 0 {
		errs = append(errs, field.Forbidden(root.Child("grant", "manifest"), "cannot be combined with capabilities or finalizers: it grants all that the manifest requests"))
	}
	for i, m := range s.AdoptManagers {
		if m == "" || len(m) > maxManager {
			errs = append(errs, field.Invalid(root.Child("adoptManagers").Index(i), m, fmt.Sprintf("want the name of a field manager, of 1 to %d bytes", maxManager)))
		}
	}
	errs = append(errs, duplicates(root.Child("adoptManagers"), s.AdoptManagers)...)
	if s.Grant != nil {
		errs = append(errs, duplicates(root.Child("grant", "finalizers"), s.Grant.Finalizers)...)
		errs = append(errs, duplicates(root.Child("grant", "digests"), s.Grant.Digests)...)
		errs = append(errs, duplicates(root.Child("grant", "signers"), s.Grant.Signers)...)
	}
	_, wrong := s.Limits.Parse(root.Child("limits"))
	errs = append(append(errs, wrong...), oneOf(root.Child("mode"), s.Mode, ModeEnforce, ModeDryRun, ModeAudit, ModeDryRunClient)...)
	return append(errs, s.Rollout.validate(root.Child("rollout"))...)
}

func (r *Rollout) validate(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := duration(path.Child("probation"), r.Probation)
	errs = append(errs, oneOf(path.Child("reconcile"), r.Reconcile, ReconcileAll, ReconcileNone, ReconcileChanged)...)
	if s := r.Shadow; s != nil {
		errs = append(errs, duration(path.Child("shadow", "time"), s.Time)...)
	}
	return append(errs, r.Canary.Validate(path.Child("canary"))...)
}

// Validate returns an error for each invalid field. It may be called on a nil Canary.
func (c *Canary) Validate(path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := duration(path.Child("time"), c.Time)
	if c.Percent < 0 || c.Percent > 100 {
		errs = append(errs, field.Invalid(path.Child("percent"), float64(c.Percent), "want more than 0 and at most 100"))
	}
	errs = append(errs, namespaces(path.Child("namespaces"), c.Namespaces)...)
	if _, err := c.Selector.Labels(); err != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), c.Selector, err.Error()))
	}
	return errs
}

// duplicates returns an error for each value that is in the list before, as the API server does for a set.
func duplicates(path *field.Path, list []string) (errs field.ErrorList) {
	for i, value := range list {
		if slices.Contains(list[:i], value) {
			errs = append(errs, field.Invalid(path.Index(i), value, "is in the list twice"))
		}
	}
	return errs
}

// namespaces returns an error for each invalid name, and for each that is named twice. An empty one would mean
// all namespaces.
func namespaces(path *field.Path, names []string) (errs field.ErrorList) {
	errs = duplicates(path, names)
	for i, ns := range names {
		if ns == "" {
			errs = append(errs, field.Required(path.Index(i), "a namespace is empty"))
		} else if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), ns, strings.Join(problems, "; ")))
		}
	}
	return errs
}

func (m *ControllerModule) validate(path *field.Path) field.ErrorList {
	if m.File != "" && m.Image != "" {
		return field.ErrorList{field.Forbidden(path.Child("image"), "cannot be combined with file")}
	}
	errs := m.Validate(path)
	if m.Follow.Or(0) != 0 && m.File != "" && len(errs) == 0 {
		errs = append(errs, field.Invalid(path.Child("follow"), string(m.Follow),
			fmt.Sprintf("needs a module of a registry, and %q is a file, which watch follows", m.File)))
	}
	return errs
}

// Validate returns the errors of the source that can be found without the registry.
func (m *ModuleSource) Validate(path *field.Path) field.ErrorList {
	errs := duration(path.Child("follow"), m.Follow)
	if d := m.Follow.Or(0); d != 0 && len(errs) == 0 {
		switch {
		case d < minFollow:
			errs = append(errs, field.Invalid(path.Child("follow"), string(m.Follow), "want at least "+minFollow.String()))
		case strings.Contains(m.Image, "@"):
			errs = append(errs, field.Invalid(path.Child("follow"), string(m.Follow), m.Image+" always names the same module: remove the digest, or follow"))
		}
	}
	if m.Verify != nil {
		_, err := m.Verify.Policy(path.Child("verify"))
		errs = append(errs, err...)
	}
	return errs
}

// Policy returns the accepted keys. If v is nil, there are none.
func (v *Verify) Policy(path *field.Path) (*signature.Policy, field.ErrorList) {
	var policy signature.Policy
	if v == nil {
		return &policy, nil
	}
	if len(v.Keys) > signature.MaxKeys {
		return nil, field.ErrorList{field.TooMany(path.Child("keys"), len(v.Keys), signature.MaxKeys)}
	}
	for i, pem := range v.Keys {
		key, err := signature.ParsePublicKey([]byte(pem))
		if err != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("keys").Index(i), "", err.Error())}
		}
		policy.Keys = append(policy.Keys, key)
	}
	return &policy, nil
}

// ServiceAccountUser is the prefix of the user name of a service account.
const ServiceAccountUser = "system:serviceaccount:"

var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (h *HostSpec) validate(root *field.Path, c *CommonSpec) field.ErrorList {
	errs := h.validateRights(root, c)
	switch {
	case h.Isolate == "":
	case runtime.GOOS != "linux":
		errs = append(errs, field.Forbidden(root.Child("isolate"), "needs Linux"))
	case !className.MatchString(h.Isolate):
		errs = append(errs, field.Invalid(root.Child("isolate"), h.Isolate, "want the name of a class: lower-case letters, digits and -"))
	}
	if m := h.Memo; m != "" && m != MemoOff && m != MemoMemory && MemoDir(m) == "" {
		errs = append(errs, field.Invalid(root.Child("memo"), m, fmt.Sprintf("want off, memory, or a directory, such as ./%s", m)))
	}
	if _, want := ParseSize(h.History, 0, math.MaxInt32); want != "" {
		errs = append(errs, field.Invalid(root.Child("history"), h.History, want))
	}
	errs = append(errs, duration(root.Child("drainTimeout"), h.DrainTimeout)...)
	return append(errs, oneOf(root.Child("shardBy"), h.ShardBy, ShardByUID, ShardByNamespace)...)
}

func (h *HostSpec) validateRights(root *field.Path, c *CommonSpec) (errs field.ErrorList) {
	if h.AuditFile != "" && (h.GrantFile != "" || !c.Grant.IsZero()) {
		errs = append(errs, field.Forbidden(root.Child("auditFile"), "allows everything, and cannot be combined with a grant"))
	}
	if h.GrantFile != "" && !c.Grant.IsZero() {
		errs = append(errs, field.Forbidden(root.Child("grantFile"), "cannot be combined with grant"))
	}
	if account, ok := strings.CutPrefix(h.As, strings.TrimSuffix(ServiceAccountUser, ":")); ok {
		if parts := strings.Split(account, ":"); len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			errs = append(errs, field.Invalid(root.Child("as"), h.As, "want "+ServiceAccountUser+"NAMESPACE:NAME"))
		}
	}
	return errs
}

// MemoDir returns the directory that a HostSpec.Memo names, or "". A directory must contain
// a slash, so that a misspelled keyword is not mistaken for one.
func MemoDir(memo string) string {
	if strings.ContainsRune(memo, os.PathSeparator) {
		return memo
	}
	return ""
}

// Parse returns the debounce of the scheduler.
func (d Debounce) Parse() scheduler.Debounce {
	return scheduler.Debounce{Quiet: d.Quiet.Or(0), Max: d.Max.Or(0)}
}

// duration validates a time, which may be empty.
func duration(path *field.Path, d Duration) field.ErrorList {
	if wrong := wrongDuration(string(d)); d != "" && wrong != "" {
		return field.ErrorList{field.Invalid(path, string(d), wrong)}
	}
	return nil
}

// wrongDuration describes the error of a time; it is empty if the time is valid.
func wrongDuration(text string) string {
	switch d, err := time.ParseDuration(text); {
	case err != nil:
		return "want a duration, such as 1m30s"
	case d < 0:
		return "must not be negative"
	}
	return ""
}

// oneOf checks that a value is empty or one of several.
func oneOf[T ~string](path *field.Path, value T, of ...T) field.ErrorList {
	if value == "" || slices.Contains(of, value) {
		return nil
	}
	texts := make([]string, len(of))
	for i, v := range of {
		texts[i] = string(v)
	}
	last := len(texts) - 1
	return field.ErrorList{field.Invalid(path, string(value), "want "+strings.Join(texts[:last], ", ")+" or "+texts[last])}
}
