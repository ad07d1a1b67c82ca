// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// webhookName returns the name of the webhook configurations of an installation.
func webhookName(namespace, name string) string {
	return flags.WebhookName(flags.ServiceGroup(namespace, name))
}

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
	meta.Name, meta.Namespace = webhookName(c.Namespace, c.Name), ""
	of := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []any{
		&admissionv1.ValidatingWebhookConfiguration{TypeMeta: of("ValidatingWebhookConfiguration"), ObjectMeta: meta},
		&admissionv1.MutatingWebhookConfiguration{TypeMeta: of("MutatingWebhookConfiguration"), ObjectMeta: meta},
	}
}

// webhookRights returns the rights to publish the certificates of the replicas, and to write the configurations and the conversions of CRDs.
func (c *Config) webhookRights() []abi.Capability {
	if !c.Webhooks {
		return nil
	}
	return WebhookRights(webhookName(c.Namespace, c.Name), c.Namespace)
}

// WebhookRights returns the rights to register webhooks in configurations of this name, which exist, and to publish certificates in a
// namespace.
func WebhookRights(name, namespace string) []abi.Capability {
	change := []string{kubeapi.VerbGet, kubeapi.VerbUpdate}
	list := []abi.Capability{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: append([]string{kubeapi.VerbList}, change...)},
		{Resource: "configmaps", Namespaces: []string{namespace}, Names: []string{name}, Verbs: []string{kubeapi.VerbGet, kubeapi.VerbCreate, kubeapi.VerbPatch, kubeapi.VerbDelete}},
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		list = append(list, abi.Capability{Group: admissionv1.GroupName, Resource: resource, Names: []string{name}, Verbs: change})
	}
	return list
}
