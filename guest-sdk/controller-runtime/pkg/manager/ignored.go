// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
)

// option is an option of a manager with a flag that it is set.
type option struct {
	name string
	set  bool
}

// ofHost returns the options for which the host has its own counterpart.
func ofHost(o *Options) []option {
	serves := func(address string) bool { return address != "" && address != "0" }
	return []option{
		{"LeaderElection", o.LeaderElection},
		{"Metrics", serves(o.Metrics.BindAddress) || o.Metrics.ExtraHandlers != nil},
		{"HealthProbeBindAddress", serves(o.HealthProbeBindAddress)},
		{"PprofBindAddress", serves(o.PprofBindAddress)},
		{"WebhookServer", o.WebhookServer != nil || o.Port != 0 || o.CertDir != ""},
		{"Client.HTTPClient", o.Client.HTTPClient != nil},
		{"Cache.HTTPClient", o.Cache.HTTPClient != nil},
		{"Cache.DefaultWatchErrorHandler", o.Cache.DefaultWatchErrorHandler != nil},
	}
}

// ofNobody returns the options without a counterpart, which a program could
// miss in a module.
func ofNobody(o *Options) []option {
	transforms, syncs := o.Cache.DefaultTransform != nil, o.Cache.SyncPeriod != nil
	for _, by := range o.Cache.ByObject {
		transforms, syncs = transforms || by.Transform != nil, syncs || by.SyncPeriod != nil
	}
	return []option{
		{"Cache.Transform", transforms},
		{"Cache.SyncPeriod", syncs},
		{"Cache.NewInformer", o.Cache.NewInformer != nil},
		{"Client.Cache.EnableReadYourWritesConsistency", readsOwnWrites(o)},
		{"EventBroadcaster", o.EventBroadcaster != nil},
	}
}

func names(list []option) []string {
	var set []string
	for _, o := range list {
		if o.set {
			set = append(set, o.name)
		}
	}
	return set
}

// note logs the options that have no effect.
func (m *module) note(all []*declare.Controller) {
	lost := names(ofNobody(&m.given))
	for _, c := range all {
		for _, name := range c.Ignored {
			lost = append(lost, c.Name+": "+name)
		}
	}
	if own := names(ofHost(&m.given)); len(own) > 0 {
		m.options.Logger.V(1).Info("the host has its own: these options have no effect", "options", strings.Join(own, ", "))
	}
	if len(lost) > 0 {
		m.options.Logger.Info("not available in a module: these options have no effect", "options", strings.Join(lost, ", "))
	}
}

// readsOwnWrites reports whether reads of the cache should wait for writes of
// the same run.
func readsOwnWrites(o *Options) bool {
	c := o.Client.Cache
	return c != nil && c.EnableReadYourWritesConsistency != nil && *c.EnableReadYourWritesConsistency
}
