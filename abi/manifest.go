// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Manifest is a module's description of itself. It is read from ManifestSection or, if there is no such section, from the export describe.
type Manifest struct {
	Name    string `msgpack:"name,omitempty" json:"name,omitempty"`
	Version string `msgpack:"version,omitempty" json:"version,omitempty"`
	// ABI is the major version; 0 means Version.
	ABI int `msgpack:"abi,omitempty" json:"abi,omitempty"`
	// SDK is the name and version of the SDK, for example "go/0.1.0".
	SDK string `msgpack:"sdk,omitempty" json:"sdk,omitempty"`

	For     *Watch  `msgpack:"for,omitempty" json:"for,omitempty"`
	Owns    []Watch `msgpack:"owns,omitempty" json:"owns,omitempty"`
	Watches []Watch `msgpack:"watches,omitempty" json:"watches,omitempty"`

	Capabilities []Capability `msgpack:"capabilities,omitempty" json:"capabilities,omitempty"`
	Limits       *Limits      `msgpack:"limits,omitempty" json:"limits,omitempty"`
	// Webhooks are the requests to the API server that the module judges, and Conversions the kinds whose objects it converts.
	Webhooks    []Webhook     `msgpack:"webhooks,omitempty" json:"webhooks,omitempty"`
	Conversions []Conversions `msgpack:"conversions,omitempty" json:"conversions,omitempty"`
	// Finalizer is the name, "domain/name", of the finalizer that the host maintains on the objects of For until the export finalize has
	// succeeded for them. Custom resources can have one without a domain: see Warnings.
	Finalizer string `msgpack:"finalizer,omitempty" json:"finalizer,omitempty"`
	// Concurrency is the maximum number of concurrent reconciles; 0 means the host's default.
	Concurrency int `msgpack:"concurrency,omitempty" json:"concurrency,omitempty"`
	// Config contains the defaults of the settings.
	Config map[string]string `msgpack:"config,omitempty" json:"config,omitempty"`

	// Requires lists host capabilities without which the module does not load; Wants lists optional ones.
	Requires []string `msgpack:"requires,omitempty" json:"requires,omitempty"`
	Wants    []string `msgpack:"wants,omitempty" json:"wants,omitempty"`
	// Hooks lists the optional exports that are implemented, for an SDK that always exports all of them. If nil, each export is
	// implemented; if empty, none is.
	Hooks HookNames `msgpack:"hooks,omitempty" json:"hooks,omitzero"`
}

// HookNames is a list for which empty and absent have different meanings.
type HookNames []string

// IsZero reports whether the list is absent. It is called by encoders.
func (h HookNames) IsZero() bool { return h == nil }

// Watch is a kind that a module reconciles, owns or watches.
type Watch struct {
	Group   string `msgpack:"group" json:"group"`
	Version string `msgpack:"version,omitempty" json:"version,omitempty"`
	Kind    string `msgpack:"kind" json:"kind"`

	Namespaces    []string `msgpack:"namespaces,omitempty" json:"namespaces,omitempty"`
	LabelSelector string   `msgpack:"labelSelector,omitempty" json:"labelSelector,omitempty"`
	FieldSelector string   `msgpack:"fieldSelector,omitempty" json:"fieldSelector,omitempty"`
	Predicates    []string `msgpack:"predicates,omitempty" json:"predicates,omitempty"`
	// Deletes requests a call without an object after an object was deleted. It is used only in Manifest.For.
	Deletes bool `msgpack:"deletes,omitempty" json:"deletes,omitempty"`
	// Map determines which objects an event affects: MapOwner, MapFunc, or MapLabel or MapAnnotation followed by a key. It is required in
	// Manifest.Watches, and used only there.
	Map string `msgpack:"map,omitempty" json:"map,omitempty"`
	// MetadataOnly stores only apiVersion, kind and metadata of the objects. It is ignored in Manifest.For.
	MetadataOnly bool `msgpack:"metadataOnly,omitempty" json:"metadataOnly,omitempty"`
	// ControllerOnly ignores owners that are not the managing controller of the object. It is used only in Manifest.Owns, and in
	// Manifest.Watches if Map is "owner".
	ControllerOnly bool `msgpack:"controllerOnly,omitempty" json:"controllerOnly,omitempty"`
	// Optional lets reconciling start before this watch has synced.
	Optional bool `msgpack:"optional,omitempty" json:"optional,omitempty"`
}

// Capability is a permission to use the API, like an RBAC rule for one resource.
type Capability struct {
	// Group is the API group, empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `msgpack:"group" json:"group" yaml:"group,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `msgpack:"resource" json:"resource" yaml:"resource"`
	// Subresources, if not empty, restricts the rule to these subresources, excluding the resource itself.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Subresources []string `msgpack:"subresources,omitempty" json:"subresources,omitempty" yaml:"subresources,flow,omitempty"`
	// Verbs are those of RBAC: get, list, watch, create, update, patch (required for apply), delete, or "*".
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Verbs []string `msgpack:"verbs" json:"verbs" yaml:"verbs,flow"`
	// Namespaces and Names limit the objects. If empty, all objects match.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Namespaces []string `msgpack:"namespaces,omitempty" json:"namespaces,omitempty" yaml:"namespaces,flow,omitempty"`
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Names []string `msgpack:"names,omitempty" json:"names,omitempty" yaml:"names,flow,omitempty"`
	// Fields, if not empty, are the only fields of an object that create, update and patch may change, as patterns: "spec.replicas",
	// "metadata.labels", "spec.containers[name=app].image". Other verbs are not restricted.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Fields []string `msgpack:"fields,omitempty" json:"fields,omitempty" yaml:"fields,omitempty"`
}

// Hook reports whether an optional export is implemented; exported reports whether the module has an export of that name.
func (m *Manifest) Hook(name string, exported bool) bool {
	if m == nil || m.Hooks == nil {
		return exported
	}
	return exported && slices.Contains(m.Hooks, name)
}

// Validate returns all errors of the manifest, joined.
func (m *Manifest) Validate() error {
	var errs []error
	if m.ABI != 0 && m.ABI != Version {
		errs = append(errs, fmt.Errorf("abi: version %d is not supported by this host, which has version %d", m.ABI, Version))
	}
	if m.For != nil {
		errs = append(errs, m.For.validate("for"))
	}
	for i := range m.Owns {
		errs = append(errs, m.Owns[i].validate(fmt.Sprintf("owns[%d]", i)))
	}
	for i := range m.Watches {
		where := fmt.Sprintf("watches[%d]", i)
		errs = append(errs, m.Watches[i].validate(where), m.Watches[i].validateMap(where))
	}
	errs = append(errs, m.checkTotals())
	for i := range m.Capabilities {
		c := &m.Capabilities[i]
		if c.Resource == "" || len(c.Verbs) == 0 {
			errs = append(errs, fmt.Errorf("capabilities[%d]: resource and verbs are required", i))
		}
	}
	errs = append(errs, m.checkWebhooks(), m.Limits.validate())
	errs = append(errs, m.checkFinalizer())
	if m.Concurrency < 0 {
		errs = append(errs, errors.New("concurrency: negative"))
	}
	return errors.Join(errs...)
}

func (m *Manifest) checkFinalizer() error {
	switch f := m.Finalizer; {
	case f == "":
		return nil
	case !isQualifiedName(f):
		return fmt.Errorf("finalizer: %q is not a finalizer's name: use domain/name, for example example.com/cleanup", f)
	case isReserved(f):
		return fmt.Errorf("finalizer: %q belongs to Kubernetes itself; use domain/name with your own domain", f)
	case m.finalizerLacksDomain() && m.For != nil && !strings.Contains(m.For.Group, "."): // no group of custom resources
		return fmt.Errorf("finalizer: %q has no domain: the API server accepts that only for custom resources, and %s is not one; "+
			"use domain/name, for example example.com/%[1]s", f, m.For.Kind)
	}
	return nil
}

// finalizerLacksDomain reports whether the finalizer has no domain, as in old controllers of custom resources.
func (m *Manifest) finalizerLacksDomain() bool {
	return m.Finalizer != "" && !strings.Contains(m.Finalizer, "/")
}

// Warnings returns potential problems of a manifest that Validate accepts.
func (m *Manifest) Warnings() []string {
	var list []string
	if m.finalizerLacksDomain() {
		list = append(list, fmt.Sprintf("finalizer: %q has no domain: the API server accepts it only for custom resources, and another controller may use it too; "+
			"keep it only to take over objects that have it", m.Finalizer))
	}
	for _, w := range m.Webhooks {
		if len(w.Rules) == 0 {
			list = append(list, fmt.Sprintf("webhooks[%s]: has no rules, so it is not served; an operator needs a +kubebuilder:webhook marker, "+
				"config/webhook/manifests.yaml, or a webhook configuration in a file of wasmctl build --roles", w.Path))
		}
	}
	return list
}

// Values of Watch.Map. MapLabel and MapAnnotation are followed by a key, whose value names the affected object.
const (
	MapOwner      = "owner"       // the owners of the watched object, according to its ownerReferences
	MapFunc       = "func"        // the objects that the export map returns
	MapLabel      = "label:"      // the object named by the value of this label
	MapAnnotation = "annotation:" // the object named by the value of this annotation
)

func (w *Watch) validateMap(where string) error {
	key, isLabel := strings.CutPrefix(w.Map, MapLabel)
	if !isLabel {
		key, _ = strings.CutPrefix(w.Map, MapAnnotation)
	}
	switch {
	case w.Map == MapOwner, w.Map == MapFunc:
		return nil
	case w.Map == "":
		return fmt.Errorf("%s: map is required: %s", where, mapValues)
	case key == w.Map:
		return fmt.Errorf("%s: map %q is none of %s", where, w.Map, mapValues)
	case !isQualifiedName(key):
		return fmt.Errorf("%s: map %q: %q is not the key of a label or annotation", where, w.Map, key)
	}
	return nil
}

const mapValues = `"owner", "label:KEY", "annotation:KEY" and "func"`

func (w *Watch) validate(where string) error {
	if w.Kind == "" {
		return fmt.Errorf("%s: kind is required", where)
	}
	return nil
}
