// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// verbConvert is the right to convert the objects of a resource between versions.
const verbConvert = "convert"

// webhookVerbs are the rights to judge requests of others. They permit no request, so they never
// appear in RBAC rules. "*" does not include them.
var webhookVerbs = []string{string(abi.WebhookValidate), string(abi.WebhookDefault), verbConvert}

// WebhookRules returns the rights that a webhook needs: its type as the verb, for each resource of
// its rules, in all namespaces. "*" means all groups, resources or subresources.
func WebhookRules(w *abi.Webhook) (rules []abi.Capability) {
	add := func(c abi.Capability) {
		c.Verbs = []string{string(w.Type)}
		if !slices.ContainsFunc(rules, func(known abi.Capability) bool { return sameButVerbs(&known, &c) }) {
			rules = append(rules, c)
		}
	}
	for _, r := range w.Rules {
		for _, group := range r.Groups {
			for _, path := range r.Resources {
				resource, sub, found := strings.Cut(path, "/")
				if !found || path == "*/*" { // which includes the objects themselves
					add(abi.Capability{Group: group, Resource: resource})
				}
				if found {
					add(abi.Capability{Group: group, Resource: resource, Subresources: []string{sub}})
				}
			}
		}
	}
	return rules
}

// ConversionRule returns the right to convert the objects of a resource.
func ConversionRule(group, resource string) abi.Capability {
	return abi.Capability{Group: group, Resource: resource, Verbs: []string{verbConvert}}
}

// IsConversion reports whether a right is one of ConversionRule.
func IsConversion(c *abi.Capability) bool { return slices.Equal(c.Verbs, []string{verbConvert}) }

// Admits reports whether rules grant a right of WebhookRules or ConversionRule in a namespace. If
// that is empty, they must grant it in all of them and for cluster-scoped objects.
func Admits(rules []abi.Capability, c *abi.Capability, namespace string) bool {
	return slices.ContainsFunc(rules, func(r abi.Capability) bool {
		subs := len(r.Subresources) == 0
		if len(c.Subresources) > 0 {
			subs = slices.Contains(r.Subresources, "*") || slices.Contains(r.Subresources, c.Subresources[0])
		}
		return subs && slices.Contains(r.Verbs, c.Verbs[0]) && (r.Group == "*" || r.Group == c.Group) && (r.Resource == "*" || r.Resource == c.Resource) &&
			(len(r.Namespaces) == 0 || namespace != "" && slices.Contains(r.Namespaces, namespace))
	})
}

// isWebhook reports whether a rule has verbs of webhooks only.
func isWebhook(c *abi.Capability) bool {
	return len(c.Verbs) > 0 && !slices.ContainsFunc(c.Verbs, func(verb string) bool { return !slices.Contains(webhookVerbs, verb) })
}

// admitted reports whether rules grant a right of WebhookRules or ConversionRule in all of its
// namespaces.
func admitted(rules []abi.Capability, c *abi.Capability) bool {
	return !slices.ContainsFunc(kubeapi.OrAny(c.Namespaces), func(ns string) bool { return !Admits(rules, c, ns) })
}

// CheckAsked returns the errors in the capabilities of a manifest, joined.
func CheckAsked(rules []abi.Capability) error {
	err := kubeapi.CheckRules(rules)
	for i := range rules {
		for _, verb := range rules[i].Verbs {
			if slices.Contains(webhookVerbs, verb) {
				err = errors.Join(err, fmt.Errorf("capabilities[%d]: verb %s: omit it, the webhooks and conversions of the manifest request it themselves", i, verb))
			}
		}
	}
	return err
}

// webhook checks a rule of a file that has verbs of webhooks.
func (p *parser) webhook(n *yaml.Node, c *abi.Capability) {
	switch {
	case !slices.ContainsFunc(c.Verbs, func(verb string) bool { return slices.Contains(webhookVerbs, verb) }):
		if c.Resource == "*" || c.Group == "*" {
			p.Bad(n, "resource and group: * is not supported: name them")
		}
	case !isWebhook(c):
		p.Bad(n, "verbs: %s need a rule of their own", strings.Join(webhookVerbs, ", "))
	case len(c.Names) > 0 || len(c.Fields) > 0:
		p.Bad(n, "names and fields do not limit the verbs %s: omit them", strings.Join(webhookVerbs, ", "))
	case len(c.Namespaces) > 0 && slices.Contains(c.Verbs, verbConvert):
		p.Bad(n, "namespaces do not limit the verb %s: omit them", verbConvert)
	}
}
