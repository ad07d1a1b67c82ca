// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdPause(s streams, paused bool) *cobra.Command {
	verb, done, what := "resume", "resumed", "Resume a paused controller or object, or a suspended Reconciler"
	long := `Objects that were triggered during the pause are reconciled, each once. For reconciler/NAME or clusterreconciler/NAME, the command
undoes "wasmctl suspend": it sets spec.suspend to false in the cluster.`
	if paused {
		verb, done, what = "pause", "paused", "Pause a controller or an object"
		long = `Running reconciles finish and no new ones start. Watches go on, and triggers are kept until "wasmctl resume". A controller stays
paused until then or until the process ends. If replicas share its objects (--shards), it is paused at all of them until then, also
at those that start later; the command waits until all have followed. For an object, the process sets the annotation
wasmctl.dev/paused, if it has the right to patch it.`
	}
	o := &steerOptions{streams: s}
	r := &reconcilerOptions{streams: s}
	var t target
	cmd := &cobra.Command{
		Use: verb + " [CONTROLLER] [[NAMESPACE/]NAME...]", Short: what,
		Long:    what + ".\n" + long + "\n\nCONTROLLER can be omitted if the process has only one.",
		Example: "  wasmctl " + verb + " configmapgenerator\n  wasmctl " + verb + " configmapgenerator default/hello\n  wasmctl " + verb + " hello -n default",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := parseServed(args); ok && !paused {
				r.kubeconfig, r.namespace = o.kubeconfig, t.namespace
				return r.each(cmd, args, r.suspend(false))
			}
			f, controller, keys, err := t.of(cmd.Context(), o, args)
			if _, ok := parseServed(args); ok && err != nil {
				err = fmt.Errorf("%w; to stop the module of a Reconciler: wasmctl suspend %s", err, strings.Join(args, " "))
			}
			if err != nil {
				return err
			}
			c, err := f.steered(cmd.Context(), controller, keys)
			if err != nil {
				return err
			}
			names, where := []string{controller}, ""
			if len(keys) == 0 {
				var res admin.Steered
				if res, err = c.Pause(cmd.Context(), controller, paused); res.Replicas > 0 {
					where = ", at " + humanize.Plural(res.Replicas, "replica")
				}
			}
			for _, key := range keys {
				if err == nil {
					err = c.PauseObject(cmd.Context(), controller, key, paused)
				}
				names = append(names, key.String())
			}
			if err != nil {
				return f.failed(cmd.Context(), controller, err)
			}
			_, err = fmt.Fprintf(s.out, "%s %s%s\n", done, strings.Join(names, " "), where)
			return err
		},
	}
	o.bind(cmd)
	t.bind(cmd)
	if !paused {
		r.bind(cmd)
	}
	return cmd
}
