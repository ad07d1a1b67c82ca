package manager

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modernize moves what version 0.15 has in the options of the manager to where later ones
// have it. Those of the webhook server have no effect there either.
func (o *Options) modernize() {
	if o.Namespace != "" && o.Cache.Namespaces == nil {
		o.Cache.Namespaces = []string{o.Namespace}
	}
	if o.Cache.SyncPeriod == nil {
		o.Cache.SyncPeriod = o.SyncPeriod
	}
	if o.Metrics.BindAddress == "" {
		o.Metrics.BindAddress = o.MetricsBindAddress
	}
	if o.DryRunClient && o.Client.DryRun == nil {
		o.Client.DryRun = &o.DryRunClient
	}
	if len(o.ClientDisableCacheFor) > 0 {
		reads := client.CacheOptions{}
		if o.Client.Cache != nil {
			reads = *o.Client.Cache
		}
		reads.DisableFor = slices.Concat(reads.DisableFor, o.ClientDisableCacheFor)
		o.Client.Cache = &reads
	}
}
