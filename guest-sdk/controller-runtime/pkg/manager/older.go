// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modernize copies the options of version 0.15 to their places in later
// versions. The options of the webhook server have no effect in either place.
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
