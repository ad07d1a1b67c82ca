// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groups are the headings in the help of a command with most flags, and the flags below each. A flag
// without a group is listed below "Flags".
var groups = []struct {
	title string
	flags []string
}{
	{"What to reconcile", []string{"filename", "name", "for", "owns", "namespace", "all-namespaces", "selector", "field-selector", "predicate"}},
	{"When to reconcile", []string{"resync", "schedule", "trigger-on-signal", "trigger-on-stdin", "debounce", "debounce-max", "memo", "concurrency"}},
	{"Settings of the module", []string{"config", "config-file"}},
	{"Rights", []string{"grant", "grant-manifest", "verify-key", "allow-more-rights", "adopt-manager", "as", "audit", "dry-run"}},
	{"Limits of the module", []string{"timeout", "memory", "fuel", "fuel-rate", "limit", "isolate"}},
	{"Limits of the process", []string{"workers", "memory-budget", "cache-compression", "compile-memory", "compile-time", "history"}},
	{"Rollout of a new module", []string{"watch", "follow", "probation", "canary", "canary-namespace", "canary-selector", "canary-time", "reconcile-on-swap"}},
	{"Cluster and process", []string{"kubeconfig", "context", "dev", "dev-data-dir", "cache-dir", "state-dir", "socket", "drain-timeout", "insecure-registry", "registry-ca"}},
	{"Replicas", []string{
		"shards", "shard-by", "leader-elect", "leader-elect-resource-namespace", "leader-elect-resource-name", "leader-elect-lease-duration",
		"leader-elect-renew-deadline", "leader-elect-retry-period", "lease-lost",
	}},
	{"Webhooks", WebhookFlags},
	{"Observability", []string{"log-format", "verbose", "metrics-address", "health-address", "pprof", "otlp-endpoint"}},
}

// Group makes the help of a command show its flags in groups.
func Group(cmd *cobra.Command) {
	cobra.AddTemplateFunc("groupedFlags", grouped)
	usage := cmd.UsageTemplate()
	from := strings.Index(usage, "Flags:\n{{.LocalFlags.FlagUsages")
	to := strings.Index(usage[from:], "}}{{end}}")
	cmd.SetUsageTemplate(usage[:from] + "{{groupedFlags .LocalFlags | trimTrailingWhitespaces" + usage[from+to:])
}

// grouped returns the flags below their headings.
func grouped(all *pflag.FlagSet) string {
	var b strings.Builder
	write := func(title string, set *pflag.FlagSet) {
		if set.SortFlags = false; set.HasAvailableFlags() {
			b.WriteString(title + ":\n" + set.FlagUsages() + "\n")
		}
	}
	var known []string
	for _, g := range groups {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, name := range g.flags {
			if f := all.Lookup(name); f != nil {
				set.AddFlag(f)
			}
		}
		write(g.title, set)
		known = append(known, g.flags...)
	}
	others := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(known, f.Name) {
			others.AddFlag(f)
		}
	})
	write("Flags", others)
	return b.String()
}
