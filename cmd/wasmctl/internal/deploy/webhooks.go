// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// WebhookConfiguration returns the name of the webhook configurations that the processes of an installation write.
func WebhookConfiguration(namespace, name string) string {
	return "wasmctl-" + flags.ServiceGroup(namespace, name)
}

func (c *Config) webhookArgs() []string {
	if !c.Webhooks {
		return nil
	}
	return []string{fmt.Sprintf("--webhook-address=:%d", webhookPort), "--webhook-service=" + c.Namespace + "/" + c.Name}
}

// webhookRights returns the rights to publish the CA of the replicas, and to write the configurations of webhooks and the conversions of CRDs.
func (c *Config) webhookRights() []abi.Capability {
	if !c.Webhooks {
		return nil
	}
	return nil
}
