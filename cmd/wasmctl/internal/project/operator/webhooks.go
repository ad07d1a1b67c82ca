// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// webhooks returns the settings of the webhooks, each path once. The webhook configurations of
// --roles take precedence over those in the folder config, and these over the markers, from which
// they were generated: the deployment may have changed them.
func (p *Project) webhooks(packages []pkg) ([]abi.Webhook, error) {
	sources := make([][]abi.Webhook, 3)
	for i, files := range [][]string{p.Roles, p.generated()} {
		for _, file := range files {
			_, hooks, err := rulesOfFile(file)
			if err != nil {
				return nil, err
			}
			sources[i] = append(sources[i], hooks...)
		}
	}
	err := eachSource(packages, func(file string, src []byte) error {
		return markers(file, src, webhookMarker, func(values map[string][]string) error {
			w, err := marked(values)
			if w.Path != "" {
				sources[2] = append(sources[2], w)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	var all []abi.Webhook
	for _, source := range sources {
		list, err := merge(source)
		if err != nil {
			return nil, err
		}
		for _, w := range list {
			if !slices.ContainsFunc(all, func(h abi.Webhook) bool { return h.Path == w.Path }) {
				all = append(all, w)
			}
		}
	}
	return all, nil
}

// generated returns the files with webhook configurations that controller-gen writes.
func (p *Project) generated() (files []string) {
	for _, dir := range []string{"config", "config/*"} {
		found, _ := filepath.Glob(filepath.Join(p.Root, filepath.FromSlash(dir), "webhook", "manifests.yaml")) // the pattern is valid
		files = append(files, found...)
	}
	return files
}

// merge joins the rules of webhooks that have one path.
func merge(list []abi.Webhook) (merged []abi.Webhook, err error) {
	for _, w := range list {
		i := slices.IndexFunc(merged, func(m abi.Webhook) bool { return m.Path == w.Path })
		if i < 0 {
			merged = append(merged, w)
			continue
		}
		same := w
		same.Name, same.Rules = merged[i].Name, merged[i].Rules
		if !reflect.DeepEqual(same, merged[i]) {
			return nil, fmt.Errorf("webhooks[%s]: two webhooks have this path and different settings, and a module has one of each path: give one of them "+
				"another path, or leave all webhooks out by wasmctl build --without webhooks", w.Path)
		}
		merged[i].Rules = slices.Concat(merged[i].Rules, w.Rules)
	}
	return merged, nil
}

// marked returns the webhook of a marker. A marker with a URL is for another server: its path is empty.
func marked(values map[string][]string) (w abi.Webhook, err error) {
	first := func(key string) string {
		if list := values[key]; len(list) > 0 {
			return list[0]
		}
		return ""
	}
	title := func(key string) string { // markers have fail, exact and ignore
		s := first(key)
		return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
	}
	w = abi.Webhook{
		Type: abi.WebhookValidate, Path: first("path"), Name: first("name"),
		FailurePolicy: title("failurePolicy"), MatchPolicy: title("matchPolicy"), Reinvocation: first("reinvocationPolicy"),
	}
	if first("mutating") == "true" {
		w.Type = abi.WebhookDefault
	}
	if s := first("timeoutSeconds"); s != "" {
		w.Timeout, err = strconv.Atoi(s)
	}
	r := abi.WebhookRule{Versions: values["versions"], Resources: values["resources"]}
	for _, group := range values["groups"] {
		if group == "core" {
			group = ""
		}
		r.Groups = append(r.Groups, group)
	}
	for _, verb := range values["verbs"] {
		r.Operations = append(r.Operations, abi.Operation(strings.ToUpper(verb)))
	}
	w.Rules = []abi.WebhookRule{r}
	return w, err
}

// appendConfigured appends the webhooks of a ValidatingWebhookConfiguration or
// MutatingWebhookConfiguration that has a path. The fields of both are the same, except for
// reinvocationPolicy.
func appendConfigured(list []abi.Webhook, t abi.WebhookType, js []byte) ([]abi.Webhook, error) {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := json.Unmarshal(js, &c); err != nil {
		return nil, err
	}
	for i := range c.Webhooks {
		h := &c.Webhooks[i]
		if h.ClientConfig.Service == nil || h.ClientConfig.Service.Path == nil {
			continue
		}
		w := abi.Webhook{Type: t, Path: *h.ClientConfig.Service.Path, Name: h.Name, MatchPolicy: text(h.MatchPolicy), Reinvocation: text(h.ReinvocationPolicy)}
		w.FailurePolicy = cmp.Or(text(h.FailurePolicy), string(admissionregistrationv1.Fail))
		if h.TimeoutSeconds != nil {
			w.Timeout = int(*h.TimeoutSeconds)
		}
		var err error
		if w.Namespaces, err = selector(h.NamespaceSelector); err == nil {
			w.Objects, err = selector(h.ObjectSelector)
		}
		if err != nil {
			return nil, fmt.Errorf("webhook[%s]: %w", h.Name, err)
		}
		for _, m := range h.MatchConditions {
			w.Conditions = append(w.Conditions, abi.MatchCondition{Name: m.Name, Expression: m.Expression})
		}
		for _, r := range h.Rules {
			rule := abi.WebhookRule{Groups: r.APIGroups, Versions: r.APIVersions, Resources: r.Resources, Scope: text(r.Scope)}
			for _, o := range r.Operations {
				rule.Operations = append(rule.Operations, abi.Operation(o))
			}
			w.Rules = append(w.Rules, rule)
		}
		list = append(list, w)
	}
	return list, nil
}

// selector returns the text of a label selector, which is empty if it selects everything.
func selector(s *metav1.LabelSelector) (string, error) {
	if s == nil {
		return "", nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "", err
	}
	return parsed.String(), nil
}

// text returns the text of an optional field.
func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}
