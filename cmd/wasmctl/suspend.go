// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/text"
)

// reconcilerOptions are the flags of suspend, resume and reconcile.
type reconcilerOptions struct {
	servedOptions

	wait    bool
	timeout time.Duration
	streams streams
}

func (o *reconcilerOptions) bind(cmd *cobra.Command) {
	o.servedOptions.bind(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "For a Reconciler: wait until wasmctl serve has done it")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "For a Reconciler: wait for this long with --wait")
}

func newCmdSuspend(s streams) *cobra.Command {
	o := &reconcilerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "suspend reconciler/NAME...",
		Short: "Stop the module of a Reconciler until it is resumed",
		Long: `Sets spec.suspend of a Reconciler or a ClusterReconciler (clusterreconciler/NAME): wasmctl serve then stops its module in order. The
objects of the module stay as they are, and "wasmctl resume reconciler/NAME" starts it again. It lasts until then, also after a restart
of wasmctl serve.

"wasmctl pause" is for a running process: it keeps the module and its watches, and ends with the process. If Flux or Argo CD applies
the Reconciler, set the field in its source, because it would be put back.`,
		Example: `  wasmctl suspend reconciler/site -n t01
  wasmctl suspend clusterreconciler/site --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.each(cmd, args, o.suspend(true))
		},
	}
	o.bind(cmd)
	return cmd
}

func newCmdReconcile(s streams) *cobra.Command {
	o := &reconcilerOptions{streams: s}
	var force bool
	cmd := &cobra.Command{
		Use:   "reconcile reconciler/NAME...",
		Short: "Let wasmctl serve look at a Reconciler now",
		Long: `Sets the annotation wasmctl.dev/requestedAt of a Reconciler or a ClusterReconciler (clusterreconciler/NAME): wasmctl serve then
fetches its module again and, if the tag names another one, swaps it in. With --force, this is also done with a module that was rolled
back or that differs in a shadow.

With --wait, the command returns when the Reconciler is ready again, and fails if its module is refused. "wasmctl trigger" runs the
objects of a controller instead.`,
		Example: `  wasmctl reconcile reconciler/site -n t01 --wait
  wasmctl reconcile reconciler/site -n t01 --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.each(cmd, args, func(ctx context.Context, r *served) error {
				now := time.Now().UTC().Format(time.RFC3339Nano)
				notes := map[string]string{v1alpha1.RequestedAt: now}
				if force {
					notes[v1alpha1.ForceAt] = now
				}
				return o.change(ctx, r, "requested", now, map[string]any{"metadata": map[string]any{"annotations": notes}})
			})
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "Accept a module that was rolled back or that differs in a shadow")
	return cmd
}

// each calls do with each Reconciler that the arguments name.
func (o *reconcilerOptions) each(cmd *cobra.Command, args []string, do func(context.Context, *served) error) error {
	list, ok := parseServed(args)
	if !ok {
		return usageError(cmd, errors.New("want reconciler/NAME or clusterreconciler/NAME"))
	}
	for _, name := range list {
		r, err := o.open(name)
		if err != nil {
			return err
		}
		if err := do(cmd.Context(), r); err != nil {
			return err
		}
	}
	return nil
}

// suspend returns the function that suspends or resumes a Reconciler.
func (o *reconcilerOptions) suspend(suspended bool) func(context.Context, *served) error {
	done := map[bool]string{true: "suspended", false: "resumed"}[suspended]
	return func(ctx context.Context, r *served) error {
		return o.change(ctx, r, done, "", map[string]any{"spec": map[string]any{"suspend": suspended}})
	}
}

// change patches a Reconciler and, with --wait, waits until wasmctl serve has reacted. requested is the
// value of the annotation that the patch sets, or empty.
func (o *reconcilerOptions) change(ctx context.Context, r *served, done, requested string, patch map[string]any) error {
	object, err := r.patch(ctx, patch)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(o.streams.out, r.text, done); err != nil {
		return err
	}
	if requested != "" && object.Spec.Suspend {
		return failure.Usage.Wrap(fmt.Errorf("%s: is suspended, and does it once it is resumed: wasmctl resume %[1]s%s", r.text, r.flag()))
	}
	if !o.wait {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done after %v", o.timeout))
	defer cancel()
	return o.await(ctx, r, object.Generation, requested)
}

// await waits until a Reconciler has reacted to a generation and a request, and reports what it waits
// for.
func (o *reconcilerOptions) await(ctx context.Context, r *served, generation int64, requested string) error {
	state := "unknown"
	err := o.streams.progress.Await(ctx, pollEvery, func(ctx context.Context) (stage, what string, err error) {
		object, err := r.get(ctx)
		if err != nil {
			return "", "", err
		}
		done, now, err := reaction(object, generation, requested)
		if err != nil {
			return "", "", failure.Module.Wrap(fmt.Errorf("%s: %w", r.text, err))
		}
		if state = now; done {
			return "", "", nil
		}
		return now, r.text + ": " + now, nil
	})
	switch {
	case err == nil:
		_, err = fmt.Fprintln(o.streams.out, r.text, text.Line(state))
	case ctx.Err() != nil:
		err = fmt.Errorf("%s: %w; it was last seen as: %s", r.text, err, state)
	}
	return err
}

// reaction reports whether wasmctl serve has reacted to a generation and a request, and describes the
// state. The error is the reason why it never will, without another change.
func reaction(o *v1alpha1.Reconciler, generation int64, requested string) (done bool, state string, err error) {
	st := &o.Status
	if o.DeletionTimestamp != nil {
		return false, "", errors.New("is being deleted")
	}
	if st.ObservedGeneration < generation || requested != "" && st.LastHandledReconcileAt != requested {
		return false, "waits for wasmctl serve", nil
	}
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.Ready)
	if ready == nil {
		return false, "has no condition yet", nil
	}
	state = ready.Reason + ": " + ready.Message
	switch {
	case meta.IsStatusConditionTrue(st.Conditions, v1alpha1.Stalled):
		return false, state, errors.New(state)
	case o.Spec.Suspend:
		return ready.Reason == "Suspended", state, nil
	}
	return ready.Status == metav1.ConditionTrue, state, nil
}
