// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

func (c *Config) webhookArgs() []string {
	if !c.Webhooks {
		return nil
	}
	return []string{fmt.Sprintf("--webhook-address=:%d", webhookPort), "--webhook-service=" + c.Namespace + "/" + c.Name}
}

// webhookConfigurations returns the configurations without webhooks: the processes add those of their modules. So every way to remove the
// installation removes them too, and the processes need no right to create any. The API server calls a process that is gone otherwise.
func (c *Config) webhookConfigurations() []any {
	if !c.Webhooks {
		return nil
	}
	meta := c.meta("")
	meta.Name, meta.Namespace = flags.WebhookName(c.Namespace, c.Name), ""
	of := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []any{
		&admissionv1.ValidatingWebhookConfiguration{TypeMeta: of("ValidatingWebhookConfiguration"), ObjectMeta: meta},
		&admissionv1.MutatingWebhookConfiguration{TypeMeta: of("MutatingWebhookConfiguration"), ObjectMeta: meta},
	}
}

// webhookRights returns the rights of processes that serve webhooks.
func (c *Config) webhookRights() []abi.Capability {
	if !c.Webhooks {
		return nil
	}
	crds := c.Converts
	if c.serves() {
		crds = []string{AnyCRD}
	}
	return WebhookRights(c.Namespace, c.Name, crds)
}

// AnyCRD is passed to WebhookRights if it is not known which modules run.
const AnyCRD = "*"

// WebhookRights returns the rights to register the webhooks behind a Service in its configurations, which exist, and to publish certificates
// in its namespace. crds are the CRDs whose objects the modules convert.
func WebhookRights(namespace, service string, crds []string) []abi.Capability {
	name := flags.WebhookName(namespace, service)
	change := []string{kubeapi.VerbGet, kubeapi.VerbUpdate}
	list := []abi.Capability{
		{Resource: "configmaps", Namespaces: []string{namespace}, Names: []string{name}, Verbs: []string{kubeapi.VerbGet, kubeapi.VerbCreate, kubeapi.VerbPatch, kubeapi.VerbDelete}},
	}
	if len(crds) > 0 {
		found := abi.Capability{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{kubeapi.VerbList}} // by their label
		of := found
		if of.Verbs = change; !slices.Contains(crds, AnyCRD) {
			of.Names = slices.Compact(slices.Sorted(slices.Values(crds)))
		}
		list = append(list, found, of)
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		list = append(list, abi.Capability{Group: admissionv1.GroupName, Resource: resource, Names: []string{name}, Verbs: change})
	}
	return list
}
