// SPDX-License-Identifier: Apache-2.0

package wasmctl

// Webhooks configures the server of the webhooks that modules have: the API server calls it to validate, default and convert objects.
type Webhooks struct {
	// Address is the address to listen on, such as ":9443".
	Address string
	// Service is where the API server reaches the server, and URL is the same for a process outside of the cluster. If both are empty, it is
	// https:// and the Address.
	Service WebhookService
	URL     string
	// CertDir has tls.crt and tls.key, as cert-manager mounts them. If it is empty, the process makes its own certificates, and publishes
	// their CA.
	CertDir string
	// Unregistered leaves the webhook configurations and the CRDs of the cluster alone. Otherwise the process applies those of its modules.
	Unregistered bool
	// Name is that of the webhook configurations, and of the ConfigMap with the certificates. It is the same for all replicas, and no other
	// group of processes has it.
	Name string
}

// WebhookService is a Service of the cluster.
type WebhookService struct {
	Namespace, Name string
	Port            int32 // 443 if 0
}
