// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// WebhookType is the entry that a webhook calls.
type WebhookType string

// The types of a webhook.
const (
	WebhookValidate WebhookType = "validate" // allows or denies a request
	WebhookDefault  WebhookType = "default"  // changes the object of a request, or denies it
)

// Webhook is a set of requests to the API server that a module judges before they take effect. Its keys are those of a webhook in a
// ValidatingWebhookConfiguration or MutatingWebhookConfiguration of Kubernetes.
type Webhook struct {
	Type WebhookType `msgpack:"type" json:"type"`
	// Path identifies the webhook: it is the path of its URL, such as "/validate-apps-v1-deployment", and Admission.Webhook.
	Path string `msgpack:"path" json:"path"`
	// Name is the qualified name in the configuration. If empty, the host makes one.
	Name string `msgpack:"name,omitempty" json:"name,omitempty"`
	// Rules select the requests. A webhook without rules is not served: a tool that builds operators adds the rules of their project.
	Rules []WebhookRule `msgpack:"rules,omitempty" json:"rules,omitempty"`
	// FailurePolicy is "Fail" or "Ignore". If empty, it is Fail for the kind that the module reconciles, and Ignore for others.
	FailurePolicy string `msgpack:"failurePolicy,omitempty" json:"failurePolicy,omitempty"`
	// MatchPolicy is "Exact" or "Equivalent"; Equivalent if empty.
	MatchPolicy string `msgpack:"matchPolicy,omitempty" json:"matchPolicy,omitempty"`
	// Reinvocation is "Never" or "IfNeeded", for type default; Never if empty.
	Reinvocation string `msgpack:"reinvocationPolicy,omitempty" json:"reinvocationPolicy,omitempty"`
	// Timeout is in seconds, 1 to 30; 10 if 0.
	Timeout int `msgpack:"timeoutSeconds,omitempty" json:"timeoutSeconds,omitempty"`
	// Namespaces and Objects are label selectors, such as "team in (a, b), !legacy".
	Namespaces string `msgpack:"namespaceSelector,omitempty" json:"namespaceSelector,omitempty"`
	Objects    string `msgpack:"objectSelector,omitempty" json:"objectSelector,omitempty"`
	// Conditions are CEL expressions, which must all be true.
	Conditions []MatchCondition `msgpack:"matchConditions,omitempty" json:"matchConditions,omitempty"`
}

// WebhookRule selects requests by resource and operation. "*" matches everything in its list.
type WebhookRule struct {
	Groups   []string `msgpack:"apiGroups" json:"apiGroups"`
	Versions []string `msgpack:"apiVersions" json:"apiVersions"`
	// Resources are plurals, with a subresource as in "deployments/scale".
	Resources  []string    `msgpack:"resources" json:"resources"`
	Operations []Operation `msgpack:"operations" json:"operations"`
	// Scope is "Cluster", "Namespaced" or "*"; "*" if empty.
	Scope string `msgpack:"scope,omitempty" json:"scope,omitempty"`
}

// MatchCondition is a CEL expression with a name.
type MatchCondition struct {
	Name       string `msgpack:"name" json:"name"`
	Expression string `msgpack:"expression" json:"expression"`
}

// Conversions is a kind whose objects a module converts between versions.
type Conversions struct {
	Group string `msgpack:"group" json:"group"`
	Kind  string `msgpack:"kind" json:"kind"`
	// Versions are those that the module knows.
	Versions []string `msgpack:"versions,omitempty" json:"versions,omitempty"`
}

// Export returns the entry that a webhook calls.
func (w *Webhook) Export() string {
	if w.Type == WebhookDefault {
		return ExportDefault
	}
	return ExportValidate
}

// Selects reports whether a rule of the webhook selects a request, as the API server does. A nil webhook selects nothing.
func (w *Webhook) Selects(a *Admission) bool {
	if w == nil {
		return false
	}
	t := &a.Target
	namespaced := a.Key.Namespace != "" && (t.Group != "" || t.Version != "v1" || t.Resource != "namespaces")
	return slices.ContainsFunc(w.Rules, func(r WebhookRule) bool {
		return (r.Scope != "Namespaced" || namespaced) && (r.Scope != "Cluster" || !namespaced) &&
			(slices.Contains(r.Operations, a.Operation) || slices.Contains(r.Operations, "*")) &&
			hasOrAll(r.Groups, t.Group) && hasOrAll(r.Versions, t.Version) && hasResource(r.Resources, t.Resource, t.Subresource)
	})
}

func hasOrAll(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}

// hasResource reports whether a list of resources, such as "pods", "pods/status", "pods/*", "*/scale" or "*", has a resource. "*" has no
// subresources, but "*/*" has everything.
func hasResource(list []string, resource, subresource string) bool {
	candidates := []string{resource, "*"}
	if subresource != "" {
		candidates = []string{resource + "/" + subresource, "*/" + subresource}
	}
	candidates = append(candidates, resource+"/*", "*/*")
	return slices.ContainsFunc(candidates, func(c string) bool { return slices.Contains(list, c) })
}

// webhookPath is the pattern of controller-runtime.
var webhookPath = regexp.MustCompile(`^(/[a-zA-Z0-9_-]+)+$`)

func (m *Manifest) checkWebhooks() error {
	var errs []error
	paths := map[string]bool{}
	for i := range m.Webhooks {
		w := &m.Webhooks[i]
		err := w.validate()
		if paths[w.Path] {
			err = errors.Join(err, fmt.Errorf("path: %q is that of another webhook", w.Path))
		}
		paths[w.Path] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("webhooks[%d]: %w", i, err))
		}
	}
	kinds := map[[2]string]bool{}
	for i, c := range m.Conversions {
		id := [2]string{c.Group, c.Kind}
		switch {
		case c.Group == "" || c.Kind == "":
			errs = append(errs, fmt.Errorf("conversions[%d]: group and kind are required", i))
		case kinds[id]:
			errs = append(errs, fmt.Errorf("conversions[%d]: %s is there twice", i, c.Kind))
		}
		kinds[id] = true
	}
	return errors.Join(errs...)
}

func (w *Webhook) validate() error {
	var errs []error
	if !webhookPath.MatchString(w.Path) {
		errs = append(errs, fmt.Errorf("path: %q is not a path such as /validate-apps-v1-deployment", w.Path))
	}
	for _, word := range []struct {
		key, value string
		of         []string
	}{
		{"type", string(w.Type), []string{string(WebhookValidate), string(WebhookDefault)}},
		{"failurePolicy", w.FailurePolicy, []string{"", "Fail", "Ignore"}},
		{"matchPolicy", w.MatchPolicy, []string{"", "Exact", "Equivalent"}},
		{"reinvocationPolicy", w.Reinvocation, []string{"", "Never", "IfNeeded"}},
	} {
		if !slices.Contains(word.of, word.value) {
			errs = append(errs, fmt.Errorf("%s: %q is none of %q", word.key, word.value, word.of))
		}
	}
	if w.Timeout < 0 || w.Timeout > 30 {
		errs = append(errs, fmt.Errorf("timeoutSeconds: %d is not between 1 and 30", w.Timeout))
	}
	for i := range w.Rules {
		if err := w.Rules[i].validate(); err != nil {
			errs = append(errs, fmt.Errorf("rules[%d]: %w", i, err))
		}
	}
	for i, c := range w.Conditions {
		if c.Name == "" || c.Expression == "" {
			errs = append(errs, fmt.Errorf("matchConditions[%d]: name and expression are required", i))
		}
	}
	return errors.Join(errs...)
}

func (r *WebhookRule) validate() error {
	if len(r.Groups) == 0 || len(r.Versions) == 0 || len(r.Resources) == 0 || len(r.Operations) == 0 {
		return errors.New("apiGroups, apiVersions, resources and operations are required")
	}
	for _, o := range r.Operations {
		if o != "*" && !slices.Contains(Operations, o) {
			return fmt.Errorf("operations: %q is none of %q", o, Operations)
		}
	}
	if !slices.Contains([]string{"", "*", "Cluster", "Namespaced"}, r.Scope) {
		return fmt.Errorf("scope: %q is none of Cluster, Namespaced and *", r.Scope)
	}
	return nil
}
