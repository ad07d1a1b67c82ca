// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Removal removes an installation. One goroutine may use it.
type Removal struct {
	Options

	client dynamic.Interface
	server *serve.Server // releases Reconcilers; it serves none
}

// Options describe a Removal.
type Options struct {
	// Namespace and Name identify the installation, as in deploy.Config.
	Namespace, Name string
	// Force stops the process first, so nothing is cleaned up.
	Force bool
	// DryRun makes Run only print what it would do.
	DryRun bool
	// Timeout limits the wait of each step.
	Timeout time.Duration
	// Out gets a line for each change, and Progress shows what is waited for.
	Out      io.Writer
	Progress *progress.Line
}

// New returns a Removal that sends requests with a configuration.
func New(cluster *rest.Config, o Options) (*Removal, error) {
	server, err := serve.New(serve.Config{Cluster: cluster, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cluster)
	return &Removal{Options: o, client: client, server: server}, err
}

// Run removes the installation, and prints what remains.
func (r *Removal) Run(ctx context.Context) error {
	s, err := r.observe(ctx)
	if err != nil {
		return err
	}
	if !r.Force && s.misnamed() {
		return failure.Usage.Wrap(fmt.Errorf("no object has the labels of the installation %s in the namespace %s, but the cluster has %s: name the installation with --name and --namespace, or delete all Reconcilers and the CRDs with --force",
			r.Name, r.Namespace, humanize.Plural(len(s.Reconcilers), "Reconciler")))
	}
	steps := s.Plan(r.Force)
	if len(steps) == 0 {
		_, _ = fmt.Fprintf(r.Out, "there is nothing to remove: no object has the labels of the installation %s in the namespace %s\n", r.Name, r.Namespace)
		return r.remains(ctx, s)
	}
	if err := r.carryOutAll(ctx, steps); err != nil {
		return err
	}
	if shared := len(s.Others) > 0; shared && !r.DryRun {
		last, err := r.observe(ctx)
		if err != nil {
			return err
		}
		if s.Others = last.Others; s.exclusive() { // they were removed at the same time, and may have left the rest to this one
			if err := r.carryOutAll(ctx, last.Plan(r.Force)); err != nil {
				return err
			}
		}
	}
	return r.remains(ctx, s)
}

func (r *Removal) carryOutAll(ctx context.Context, steps []Step) error {
	for i := range steps {
		if err := r.carryOut(ctx, &steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// carryOut carries out a step.
func (r *Removal) carryOut(ctx context.Context, step *Step) error {
	if step.Action == Release && !r.DryRun {
		return r.release(ctx)
	}
	for _, o := range step.Objects {
		if err := r.change(ctx, step.Action, o); err != nil {
			return err
		}
	}
	switch {
	case r.DryRun:
		return nil
	case step.Action == DeleteReconcilers:
		return r.await(ctx, r.finalized())
	}
	return r.await(ctx, func(ctx context.Context) (string, error) { return r.left(ctx, step) })
}

// change changes an object, and prints that.
func (r *Removal) change(ctx context.Context, action Action, o Object) error {
	client, err := r.client.Resource(o.GVR).Namespace(o.Key.Namespace), error(nil)
	verb, done := "delete", "deleted"
	if action == Release { // only in a dry run
		verb = "release, if no process does,"
	}
	if r.DryRun {
		done = "would " + verb
	} else {
		err = client.Delete(ctx, o.Key.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("%s[%s]: %s: %w", o.GVR.GroupResource(), o.Key, verb, err)
	}
	_, err = fmt.Fprintln(r.Out, done, o)
	return err
}

// finalized returns a function for await. It returns "" when no process works on Reconcilers any more.
func (r *Removal) finalized() func(context.Context) (string, error) {
	var last []Reconciler
	since := time.Now()
	return func(ctx context.Context) (string, error) {
		s, err := r.observe(ctx)
		if err != nil {
			return "", err
		}
		if !slices.Equal(s.Reconcilers, last) {
			last, since = s.Reconcilers, time.Now()
		}
		for i := range s.Reconcilers {
			if o := &s.Reconcilers[i]; !o.Deleting { // it was created again
				if err := r.change(ctx, DeleteReconcilers, o.Object); err != nil {
					return "", err
				}
			}
		}
		if !s.working(time.Since(since)) {
			return "", nil
		}
		first := &s.Reconcilers[0]
		return fmt.Sprintf("%s to go, first %s: %s; with --force, nothing is cleaned up", humanize.Plural(len(s.Reconcilers), "Reconciler"), first.Key, cmp.Or(first.Waits, "no status")), nil
	}
}

// left describes the objects of a step, and their pods, that are not gone.
func (r *Removal) left(ctx context.Context, step *Step) (string, error) {
	var names []string
	for _, o := range step.Objects {
		client := r.client.Resource(o.GVR).Namespace(o.Key.Namespace)
		object, err := client.Get(ctx, o.Key.Name, metav1.GetOptions{})
		if err == nil && step.Action == Delete && slices.Contains(object.GetFinalizers(), serve.Finalizer) {
			_, err = client.Patch(ctx, o.Key.Name, types.StrategicMergePatchType, []byte(removeFinalizer), metav1.PatchOptions{})
		}
		if err == nil {
			names = append(names, o.String())
		} else if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("%s[%s]: %w", o.GVR.GroupResource(), o.Key, err)
		}
	}
	if step.Action == DeleteWorkloads {
		running, err := r.list(ctx, pods, r.Namespace, metav1.ListOptions{
			LabelSelector: deploy.LabelName + "=wasmctl," + deploy.LabelInstance + "=" + r.Name, FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
		})
		if err != nil {
			return "", err
		}
		for i := range running {
			names = append(names, Object{pods, keyOf(&running[i])}.String())
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s to go, first %s", humanize.Plural(len(names), "object"), names[0]), nil
}

// release deletes all Reconcilers, and takes the finalizers off them and off the objects of their modules.
func (r *Removal) release(ctx context.Context) error {
	all, err := r.server.Reconcilers(ctx, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("the finalizers are not released after %v: does a process still run?", r.Timeout))
	defer cancel()
	var errs []error
	deleted := &Step{Action: DeleteReconcilers}
	for i := range all {
		o := Object{v1alpha1.GVR(all[i].GetKind()), keyOf(&all[i])}
		deleted.Objects = append(deleted.Objects, o)
		if all[i].GetDeletionTimestamp() == nil {
			errs = append(errs, r.change(ctx, Delete, o))
		}
		n, err := r.server.Release(ctx, &all[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%s]: %w", o.GVR.GroupResource(), o.Key, err))
			continue
		}
		line := fmt.Sprint("released ", o)
		if n > 0 {
			line += fmt.Sprintf(", and %s of its modules, without cleanup", humanize.Plural(n, "object"))
		}
		if _, err := fmt.Fprintln(r.Out, line); err != nil {
			return err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.await(ctx, func(ctx context.Context) (string, error) { return r.left(ctx, deleted) })
}

// pause is the time between two looks at the cluster.
const pause = 500 * time.Millisecond

// await calls look until it returns "". Meanwhile, it shows the results.
func (r *Removal) await(ctx context.Context, look func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("after %v", r.Timeout))
	defer cancel()
	var last string
	err := r.Progress.Await(ctx, pause, func(ctx context.Context) (stage, what string, err error) {
		waits, err := look(ctx)
		if err != nil || waits == "" {
			return "", "", err
		}
		last = waits
		return "gone", "waiting: " + waits, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// remains prints what is left in the cluster on purpose. before is the state before the removal.
func (r *Removal) remains(ctx context.Context, before *State) error {
	var lines []string
	if len(before.Others) > 0 && len(before.CRDs) > 0 {
		lines = append(lines, "the Reconcilers and their CRDs, which other installations need: "+strings.Join(before.Others, ", "))
	}
	if i := slices.IndexFunc(before.Reconcilers, func(o Reconciler) bool { return o.Orphan }); i >= 0 && before.exclusive() {
		lines = append(lines, "the finalizers on the objects of Reconcilers with deletionPolicy Orphan, such as "+before.Reconcilers[i].Key.String())
	}
	_, err := r.client.Resource(namespaces).Get(ctx, r.Namespace, metav1.GetOptions{})
	if err == nil {
		lines = append(lines, "the namespace "+r.Namespace+" with its Leases and your own objects: kubectl delete namespace "+r.Namespace)
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace[%s]: get: %w", r.Namespace, err)
	}
	if before.Runs {
		lines = append(lines, "the finalizers of its modules on objects: wasmctl release takes them off")
	}
	if before.Helm {
		lines = append(lines, fmt.Sprintf("the record of the Helm release: helm uninstall %s -n %s", r.Name, r.Namespace))
	}
	if len(before.Reconcilers) > 0 {
		lines = append(lines, "the objects that modules have created, and the service accounts and roles of tenants")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(r.Out, "not removed:", line); err != nil {
			return err
		}
	}
	return nil
}
