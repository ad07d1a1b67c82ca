// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

const (
	// namespaceName is the label with the name of a namespace, which the API server sets.
	namespaceName = "kubernetes.io/metadata.name"
	// defaultTimeout is that of the API server, in seconds.
	defaultTimeout = 10
	// maxSize is the maximum size of all webhooks of one controller in bytes. All controllers share two objects, whose size etcd limits.
	maxSize = 64 << 10
	// maxConfiguration is the maximum size of the webhooks of a configuration in bytes, with their bundles. A request of etcd has at most 1.5
	// MiB.
	maxConfiguration = 1200 << 10
	// bookkeeping is about what the API server adds to each webhook, in managedFields.
	bookkeeping = 700
	// maxName is the maximum length of the name of a webhook.
	maxName = 253
)

// systemNamespaces are excluded from admission, because the cluster cannot be repaired if it depends on a webhook there.
var systemNamespaces = []string{"kube-node-lease", "kube-system"}

// Options are those of a group of replicas that serve the same webhooks.
type Options struct {
	// Name is that of both webhook configurations, and of the record of the replicas, such as wasmctl-NAME. It is the same for all replicas,
	// and no other group has it.
	Name string
	// Service is the Service through which the API server calls the replicas. If its name is empty, the API server uses URL, which begins
	// with https:// and does not end with a slash.
	Service Service
	URL     string
	// BundlesOnly leaves the configurations and CRDs to the user: only the caBundle is written, if they call this group.
	BundlesOnly bool
}

// Service is a Service of the cluster.
type Service struct {
	Namespace, Name string
	Port            int32
}

// Source is a controller with what it serves at one moment.
type Source struct {
	webhook.Entry

	Routes *webhook.Routes
	// Owned are the resources of Routes.Owned.
	Owned []schema.GroupResource
}

// Hooks are the entries of the configurations, by type.
type Hooks map[abi.WebhookType][]any

// desired returns the webhooks of the controllers, without caBundle, and an error for each one that cannot be registered. refused has the
// webhooks that the API server does not accept, with its error: see key.
func desired(sources []Source, o *Options, refused map[string]error) (Hooks, problems) {
	hooks, failed, names, urls := Hooks{}, problems{}, map[string]bool{}, map[string]bool{}
	for i := range sources {
		s := &sources[i]
		size := 0
		for j := range s.Routes.Webhooks {
			w := &s.Routes.Webhooks[j]
			url := s.Prefix + w.Path
			if s.conflict(webhook.Name(url)) != "" || urls[url] {
				continue // the server reports it
			}
			hook, err := o.hook(s, w)
			if hook != nil {
				hook["name"] = unique(hookName(s, w), url, names)
				text := key(hook)
				if size += len(text); size > maxSize {
					err = fmt.Errorf("the webhooks of a controller are limited to %d bytes", maxSize)
				} else if err = refused[text]; err == nil {
					urls[url] = true
					hooks[w.Type] = append(hooks[w.Type], hook)
				}
			}
			if err != nil {
				failed[webhook.Name(url)] = fmt.Errorf("controller[%s]: webhook[%s]: %w", s.Controller, url, err)
			}
		}
	}
	return hooks, failed
}

// conflict returns the message if the server does not serve the webhook or the conversion with a name, because another controller has it.
func (s *Source) conflict(name string) string {
	i := slices.IndexFunc(s.Conflicts, func(c string) bool { return strings.HasPrefix(c, name+" ") })
	if i < 0 {
		return ""
	}
	return s.Conflicts[i]
}

// key identifies a webhook with all its properties, except for its bundle.
func key(hook map[string]any) string {
	hook = runtime.DeepCopyJSON(hook)
	unstructured.RemoveNestedField(hook, "clientConfig", "caBundle")
	text, err := json.Marshal(hook)
	if err != nil {
		panic("BUG: webhook: " + err.Error()) // it consists of JSON's own types
	}
	return string(text)
}

// hook returns the entry of a webhook, or nil if it cannot select any request.
func (o *Options) hook(s *Source, w *abi.Webhook) (map[string]any, error) {
	rules := rulesOf(w)
	if len(rules) == 0 {
		return nil, nil
	}
	namespaces, err := o.namespaces(w)
	if err != nil {
		return nil, err
	}
	objects, err := selector(w.Objects)
	if err != nil {
		return nil, fmt.Errorf("objectSelector: %w", err)
	}
	hook := map[string]any{
		"rules": rules, "namespaceSelector": namespaces, "objectSelector": objects,
		"clientConfig":   o.client(s.Prefix + w.Path),
		"failurePolicy":  failurePolicy(s, w),
		"matchPolicy":    or(w.MatchPolicy, "Equivalent"),
		"timeoutSeconds": int64(defaultTimeout),
		"sideEffects":    "None", "admissionReviewVersions": []any{"v1"},
	}
	if w.Timeout != 0 {
		hook["timeoutSeconds"] = int64(w.Timeout)
	}
	if w.Type == abi.WebhookDefault {
		hook["reinvocationPolicy"] = or(w.Reinvocation, "Never")
	}
	if len(w.Conditions) > 0 {
		conditions := make([]any, 0, len(w.Conditions))
		for _, c := range w.Conditions {
			conditions = append(conditions, map[string]any{"name": c.Name, "expression": c.Expression})
		}
		hook["matchConditions"] = conditions
	}
	return hook, nil
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// client returns how the API server calls a path.
func (o *Options) client(path string) map[string]any {
	if o.Service.Name == "" {
		return map[string]any{"url": o.URL + path}
	}
	return map[string]any{"service": map[string]any{
		"namespace": o.Service.Namespace, "name": o.Service.Name, "port": int64(o.Service.Port), "path": path,
	}}
}

// rulesOf returns the rules of a webhook.
func rulesOf(w *abi.Webhook) (rules []any) {
	for _, r := range w.Rules {
		operations := make([]string, 0, len(r.Operations))
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		rules = append(rules, map[string]any{
			"apiGroups": anys(r.Groups), "apiVersions": anys(r.Versions), "resources": anys(r.Resources), "operations": anys(operations),
			"scope": or(r.Scope, "*"),
		})
	}
	return rules
}

func anys(list []string) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// namespaces returns the selector of namespaces: those of the webhook, without those that no webhook may block.
func (o *Options) namespaces(w *abi.Webhook) (map[string]any, error) {
	excluded := slices.Clone(systemNamespaces)
	if own := o.Service.Namespace; own != "" && !slices.Contains(excluded, own) {
		excluded = append(excluded, own)
	}
	slices.Sort(excluded)
	of, err := selector(w.Namespaces)
	if err != nil {
		return nil, fmt.Errorf("namespaceSelector: %w", err)
	}
	all, _ := of["matchExpressions"].([]any)
	of["matchExpressions"] = append(all, map[string]any{"key": namespaceName, "operator": "NotIn", "values": anys(excluded)})
	return of, nil
}

// selector returns a label selector in the form of the API.
func selector(text string) (map[string]any, error) {
	parsed, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(parsed)
}

// failurePolicy returns what happens if the webhook cannot be called. Only objects of the controller's own kind wait for it by default.
func failurePolicy(s *Source, w *abi.Webhook) string {
	if w.FailurePolicy != "" {
		return w.FailurePolicy
	}
	for _, r := range w.Rules {
		for _, g := range r.Groups {
			for _, resource := range r.Resources {
				resource, _, _ = strings.Cut(resource, "/")
				if !slices.Contains(s.Owned, schema.GroupResource{Group: g, Resource: resource}) {
					return "Ignore"
				}
			}
		}
	}
	return "Fail"
}

var notInName = regexp.MustCompile(`[^a-z0-9.]+`)

// hookName returns the qualified name of a webhook. With a prefix, several controllers share the configurations, so the prefix is part of it.
func hookName(s *Source, w *abi.Webhook) string {
	dns := func(text string) string {
		return strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-.")
	}
	if w.Name != "" && s.Prefix == "" {
		return w.Name
	}
	owner := dns(s.Prefix)
	if owner == "" {
		owner = dns(s.Controller)
	}
	if w.Name != "" {
		return w.Name + "." + owner
	}
	return dns(w.Path) + "." + owner + ".wasmctl.dev"
}

// unique returns the name, or one with a hash of the URL if it is too long or used already.
func unique(name, url string, used map[string]bool) string {
	if used[name] || len(name) > maxName {
		sum := sha256.Sum256([]byte(url))
		hash := hex.EncodeToString(sum[:8])
		name = hash + "." + strings.TrimLeft(name[max(0, len(name)+len(hash)+1-maxName):], "-.")
	}
	used[name] = true
	return name
}
