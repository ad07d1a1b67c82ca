package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// limitOptions are the limits of a module that have no flag of their own.
type limitOptions struct {
	named  map[string]string
	limits host.Limits // named, parsed by validate
}

// ownFlag are the limits with a flag of their own.
var ownFlag = []abi.LimitName{abi.LimitMemory, abi.LimitTimeout, abi.LimitFuel}

// namedLimits are the names that --limit takes.
func namedLimits() []string {
	var names []string
	for _, name := range abi.LimitNames {
		if !slices.Contains(ownFlag, name) {
			names = append(names, string(name))
		}
	}
	return names
}

func (o *limitOptions) bind(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&o.named, "limit", nil, "limit of the module as name=value, for example api_rate=50; may be repeated (names and defaults: docs/limits.md)")
	var names []string
	for _, name := range namedLimits() {
		names = append(names, name+"=")
	}
	_ = cmd.RegisterFlagCompletionFunc("limit", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// validate parses the limits.
func (o *limitOptions) validate() error {
	o.limits = host.Limits{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.named)) {
		switch {
		case slices.Contains(ownFlag, abi.LimitName(name)):
			errs = append(errs, fmt.Errorf("--limit %s: it has a flag of its own: --%s", name, name))
			continue
		case !slices.Contains(namedLimits(), name):
			errs = append(errs, fmt.Errorf("--limit %q: want one of %s", name, strings.Join(namedLimits(), ", ")))
			continue
		}
		q, err := resource.ParseQuantity(o.named[name])
		if err != nil || q.Value() < 1 {
			errs = append(errs, fmt.Errorf("--limit %s=%s: want a number of at least 1, such as 500, 10k or 64Ki", name, o.named[name]))
			continue
		}
		o.limits.Set(abi.LimitName(name), q.Value())
	}
	if err := o.limits.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--limit: %w", err))
	}
	return errors.Join(errs...)
}

// hostLimits are the limits that the flags set.
func (o *controllerOptions) hostLimits() host.Limits {
	l := o.limit.limits
	l.Memory, l.Timeout = o.memoryBytes, o.timeout
	return l
}

// apiLimits are those that are kept where the API is served.
func apiLimits(l host.Limits) kubeapi.Limits {
	return kubeapi.Limits{Rate: l.APIRate, InFlight: l.APIInFlight, ListItems: l.ListItems, ListBytes: l.ListBytes}
}

// limitStats is how often the module has reached each of its limits.
func (s *session) limitStats() map[abi.LimitName]uint64 {
	stats := s.module.LimitStats()
	for name, n := range s.api.LimitStats() {
		stats[name] += n
	}
	return stats
}

// maxQuarantine is how many objects in quarantine a status names.
const maxQuarantine = 20

// addLimits adds what came of limits to a status.
func (s *session) addLimits(c *admin.Controller) {
	list, total := s.controller.Quarantined(maxQuarantine)
	c.Quarantined = total
	for _, q := range list {
		c.Quarantine = append(c.Quarantine, admin.QuarantinedObject{
			Object: q.Key.String(), Since: q.Since, Until: q.Until, Runs: q.Runs, Kind: string(q.Kind), Error: s.secrets.Text(q.Text),
		})
	}
	for name, n := range s.limitStats() {
		if c.Limits == nil {
			c.Limits = map[string]uint64{}
		}
		c.Limits[string(name)] = n
	}
}

// quarantineTable are the objects in quarantine.
func quarantineTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "QUARANTINED", least: 20}, {title: "KIND"}, {title: "FOR"}, {title: "RUNS", right: true}, {title: "NEXT"}, {title: "ERROR", least: 10},
	}}
	for _, c := range list {
		for _, q := range c.Quarantine {
			next := "now"
			if q.Until.After(now) {
				next = "in " + age(q.Until, now)
			}
			t.row("", c.Name+": "+q.Object, q.Kind, age(now, q.Since), q.Runs, next, firstLine(q.Error))
		}
		if more := c.Quarantined - len(c.Quarantine); more > 0 {
			t.row("", fmt.Sprintf("%s: %d more", c.Name, more))
		}
	}
	return t
}
