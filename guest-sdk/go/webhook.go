// SPDX-License-Identifier: Apache-2.0

package wasmctl

// Operation is what a request to the API server does.
type Operation string

// The operations of requests.
const (
	OperationCreate  Operation = "CREATE"
	OperationUpdate  Operation = "UPDATE"
	OperationDelete  Operation = "DELETE"
	OperationConnect Operation = "CONNECT"
)

// Webhook is a set of requests to the API server that the module judges before
// they take effect. It needs the right to validate or default their resources
// in the operator's grant.
//
// Exactly one of Validate and Default is set. They run on every replica of the
// host, at the same time as Reconcile. A Verdict must depend only on the
// request, the settings and the Cache: ctx has these and the log, and calls of
// its Client return an error.
type Webhook struct {
	// Path is the path of the URL. If it is empty, it is that of kubebuilder
	// for the kind of Manifest.For: "/validate-GROUP-VERSION-KIND" or
	// "/mutate-GROUP-VERSION-KIND", in lower case and with hyphens for dots.
	Path string `json:"path"`
	// Name is the qualified name in the configuration. If it is empty, the host
	// makes one.
	Name string `json:"name,omitempty"`
	// Rules select the requests. If they are nil, they are CREATE and UPDATE of
	// the kind of Manifest.For. The host does not serve a webhook whose Rules
	// are empty, but not nil.
	Rules []WebhookRule `json:"rules,omitempty"`
	// FailurePolicy decides about a request if the module cannot: "Fail" or
	// "Ignore". If it is empty, it is Fail for the kind of Manifest.For, and
	// Ignore for others.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// MatchPolicy is "Equivalent", also if empty, or "Exact".
	MatchPolicy string `json:"matchPolicy,omitempty"`
	// Reinvocation is "Never", also if empty, or "IfNeeded", for Default.
	Reinvocation string `json:"reinvocationPolicy,omitempty"`
	// TimeoutSeconds is 1 to 30; 0 means 10.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// NamespaceSelector and ObjectSelector are label selectors, "team in (a,
	// b)".
	NamespaceSelector string `json:"namespaceSelector,omitempty"`
	ObjectSelector    string `json:"objectSelector,omitempty"`
	// MatchConditions are CEL expressions that must all be true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`

	// Validate allows or denies the request.
	Validate func(ctx *Context, a Admission) Verdict `json:"-"`
	// Default changes the object of the request, or denies it. The API server
	// may call it again with its own result, which it must not change. See
	// Defaulter and Defaulted.
	Default func(ctx *Context, a Admission) Verdict `json:"-"`
}

// WebhookRule selects requests. "*" in a list matches everything.
type WebhookRule struct {
	Groups   []string `json:"apiGroups"`
	Versions []string `json:"apiVersions"`
	// Resources are plurals, with a subresource as in "deployments/scale".
	Resources  []string    `json:"resources"`
	Operations []Operation `json:"operations"`
	// Scope is "Cluster", "Namespaced" or "*", also if empty.
	Scope string `json:"scope,omitempty"`
}

// MatchCondition is a CEL expression over object, oldObject, request and
// authorizer.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// describedWebhook is a Webhook in its form in the manifest.
type describedWebhook struct {
	Webhook
	Type string `json:"type"`
}

// path returns the path of the webhook; watch is Manifest.For.
func (w *Webhook) path(watch *Watch) string {
	if w.Path != "" || watch == nil || watch.Version == "" {
		return w.Path
	}
	prefix := "/validate-"
	if w.Default != nil {
		prefix = "/mutate-"
	}
	b := []byte(prefix + watch.Group + "-" + watch.Version + "-" + lower(watch.Kind))
	for i, c := range b {
		if c == '.' {
			b[i] = '-'
		}
	}
	return string(b)
}

// described returns the webhooks in their form in the manifest.
func (m *Manifest) describedWebhooks() []describedWebhook {
	list := make([]describedWebhook, len(m.Webhooks))
	for i, w := range m.Webhooks {
		w.Path = w.path(m.For)
		if w.Rules == nil && m.For != nil && m.For.Version != "" {
			w.Rules = []WebhookRule{{
				Groups: []string{m.For.Group}, Versions: []string{m.For.Version}, Resources: []string{Plural(m.For.Kind)},
				Operations: []Operation{OperationCreate, OperationUpdate},
			}}
		}
		list[i] = describedWebhook{Webhook: w, Type: "validate"}
		if w.Default != nil {
			list[i].Type = "default"
		}
	}
	return list
}

// webhook returns the webhook that has the path, or nil.
func (m *Manifest) webhook(path string) *Webhook {
	for i := range m.Webhooks {
		if w := &m.Webhooks[i]; w.path(m.For) == path {
			return w
		}
	}
	return nil
}

// webhookProblem returns the reason why the webhooks and conversions cannot
// run, or "" if they can.
func (m *Manifest) webhookProblem() string {
	for i := range m.Webhooks {
		w := &m.Webhooks[i]
		path := w.path(m.For)
		switch {
		case (w.Validate == nil) == (w.Default == nil):
			return "the webhook " + path + " needs one of Validate and Default"
		case path == "":
			return "a webhook needs a Path, or Manifest.For with a Version"
		case m.webhook(path) != w:
			return "two webhooks have the path " + path
		}
	}
	for i := range m.Conversions {
		if c := &m.Conversions[i]; c.Group == "" || c.Kind == "" || c.Convert == nil {
			return "the conversion of " + c.Kind + " needs Group, Kind and Convert"
		}
	}
	return ""
}
