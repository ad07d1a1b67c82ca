// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// statusOptions are the flags of status.
type statusOptions struct {
	steerOptions

	output, by           string
	watch, all, replicas bool
	every                time.Duration
}

// byTenant is the value of --by.
const byTenant = "tenant"

func newCmdStatus(s streams) *cobra.Command {
	o := &statusOptions{steerOptions: steerOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the controllers of a running process",
		Long: `Shows the controllers of a running process with their watches and module revisions. With many controllers, it shows only watches and
revisions that need attention; -o json shows all.

READY counts objects that are due, OLDEST is how long the next one has been due, WAITING counts objects that wait for a time (a
requeue, a retry, the debounce), RUNNING is busy workers of all workers. RUNS and FAILED count since the start. FAILING and
QUARantined count objects, DENIED counts refused requests of the module. A watch has been in its STATE (syncing, ready, denied,
absent, failing or refused) FOR this long, and PROGRESS is the time since the API server last sent something. For one object,
use "wasmctl explain".

If replicas share the objects (--shards), the output shows the slots of this replica, whether each slot is run by one replica, and all
replicas. With --all-replicas, it shows only the replicas, each with the state of its controllers.

With --all, the output has every process of this user on this machine, each with its socket.

With --by tenant, the output has the account of each tenant: a namespace with Reconcilers, or a controller that is its own. MEMORY is
charged to it, PINNED is the part that cannot be taken back, and SHARE is its fair share of the memory budget. REFUSED counts requests
for memory that were refused, and RECLAIMED runs that were interrupted because other tenants needed their shares. COMPUTING is how long
the runs of its controllers have computed since they started: by the clock, without waits for the API server. LOG is about what the log
of the process has about it, and DROPPED counts the lines beyond its bounds.

With --watch, the output refreshes until Ctrl-C, and shows problems first.`,
		Example: `  wasmctl status
  wasmctl status --watch
  wasmctl status --all
  wasmctl status --all-replicas
  wasmctl status -o json | jq '.controllers[].watches'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.bind(cmd)
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().StringVar(&o.by, "by", "", `Show the account of each "tenant" in place of the controllers`)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{byTenant}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&o.all, "all", false, "Show all processes of this user on this machine")
	cmd.Flags().BoolVar(&o.replicas, "all-replicas", false, "Show the replicas that share the objects, whatever machine they are on")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Keep refreshing the output")
	cmd.Flags().DurationVar(&o.every, "interval", 2*time.Second, "Refresh at this interval with --watch")
	return cmd
}

// check refuses flags that cannot be combined.
func (o *statusOptions) check(cmd *cobra.Command) error {
	switch {
	case o.watch && o.output != "text":
		return usageError(cmd, fmt.Errorf("--watch prints text: omit --output %s", o.output))
	case o.every < minRefresh:
		return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", o.every, minRefresh))
	case o.by != "" && o.by != byTenant:
		return usageError(cmd, fmt.Errorf("--by %q: want %q", o.by, byTenant))
	case o.by != "" && (o.all || o.watch || o.replicas):
		return usageError(cmd, errors.New("--by cannot be combined with --all, --watch or --all-replicas"))
	case o.replicas && (o.all || o.watch):
		return usageError(cmd, errors.New("--all-replicas cannot be combined with --all or --watch"))
	case o.all && (o.watch || o.socket != "" || o.remote()):
		return usageError(cmd, errors.New("--all cannot be combined with --watch, --socket, --in or --pod"))
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context) error {
	if o.all {
		return o.statusOfAll(ctx, o.output)
	}
	f, err := o.reach(ctx)
	switch {
	case err != nil:
		return err
	case o.replicas:
		return showReplicas(o.streams, &f[0].status, o.output)
	case o.by == byTenant:
		return f.showTenants(o.streams, o.output)
	case !o.watch && len(f) > 1:
		return f.show(o.streams, o.output)
	case !o.watch:
		return showStatus(o.streams, &f[0].status, o.output)
	}
	m, err := f.only()
	if err != nil {
		return err
	}
	ctx, stop := followContext(ctx)
	defer stop()
	return printer.Refresh(ctx, o.streams.out, o.every, func(ctx context.Context, screen printer.Screen) ([]string, error) {
		st, err := m.client.Status(ctx)
		return printer.StatusLines(&st, time.Now(), screen, true), err
	})
}

// showStatus shows one process.
func showStatus(s streams, st *admin.Status, output string) error {
	if output == "text" {
		screen := printer.ScreenOf(s.out)
		return screen.Write(printer.StatusLines(st, time.Now(), screen, false))
	}
	return printer.Output(s.out, output, st, nil)
}

// showReplicas shows the replicas that share the objects with a process.
func showReplicas(s streams, st *admin.Status, output string) error {
	switch {
	case st.Shards == nil:
		return failure.Usage.Wrap(errors.New("--all-replicas: the process does not share its objects with other replicas: it runs without --shards"))
	case output == "text":
		screen := printer.ScreenOf(s.out)
		return screen.Write(printer.ReplicaLines(st, time.Now(), screen))
	}
	return printer.Output(s.out, output, st.Shards, nil)
}

// statusOfAll shows all processes on this machine. If a process does not answer, the others are still
// shown.
func (o *steerOptions) statusOfAll(ctx context.Context, output string) error {
	sockets, err := admin.FindAll(ctx)
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	var f fleet
	var failed []error
	for _, socket := range sockets {
		m := member{name: "socket " + socket, client: admin.NewClient(socket)}
		if m.status, err = m.client.Status(ctx); err != nil {
			failed = append(failed, err)
			continue
		}
		f = append(f, m)
	}
	return errors.Join(append(failed, f.show(o.streams, output))...)
}

// show shows the members, one after the other as text, or as a list in the other formats.
func (f fleet) show(s streams, output string) error {
	var list []*admin.Status
	var lines []string
	screen := printer.ScreenOf(s.out)
	for i := range f {
		st := &f[i].status
		if list = append(list, st); len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(append(lines, f[i].name), printer.StatusLines(st, time.Now(), screen, false)...)
	}
	if output == "text" {
		return screen.Write(lines)
	}
	return printer.Output(s.out, output, list, nil)
}

// showTenants shows the accounts of the tenants of each process.
func (f fleet) showTenants(s streams, output string) error {
	accounts := map[string][]admin.Tenant{}
	var lines []string
	screen := printer.ScreenOf(s.out)
	for i := range f {
		accounts[f[i].name] = f[i].status.Tenants
		if len(f) > 1 {
			lines = append(lines, f[i].name)
		}
		lines = append(lines, printer.TenantLines(&f[i].status, time.Now(), screen)...)
	}
	switch {
	case output == "text":
		return screen.Write(lines)
	case len(f) == 1:
		return printer.Output(s.out, output, f[0].status.Tenants, nil)
	}
	return printer.Output(s.out, output, accounts, nil)
}

// minRefresh is the shortest interval of output that refreshes.
const minRefresh = 100 * time.Millisecond
