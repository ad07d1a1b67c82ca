// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/stranded"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// releaseOptions are the flags of release.
type releaseOptions struct {
	steerOptions

	target          target
	all, dryRun     bool
	kind, finalizer string
}

func newCmdRelease(s streams) *cobra.Command {
	o := &releaseOptions{steerOptions: steerOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "release [CONTROLLER] [NAMESPACE/]NAME...",
		Short: "Take the finalizer of a controller off objects",
		Long: `Takes the finalizer of a controller off objects that it no longer finalizes, so that they can be deleted. Nothing is
cleaned up. With --all, these are all objects that have the finalizer but are outside of the namespaces and selectors
of the controller; wasmctl status counts them. A named object can also be one that is being deleted and whose cleanup
fails. An object that the controller watches is refused unless it is being deleted, because the controller would add
the finalizer again.

The running process takes the finalizer off. If no process runs the controller any more, name the kind with --for and
the finalizer with --finalizer: the command then connects to the cluster itself, as kubectl does, and --all means all
objects of the kind that have the finalizer, in --namespace or in all namespaces.

The exit code is 0 if no object has the finalizer any more, and otherwise 1, or 6 without the right to list the objects.`,
		Example: `  wasmctl release webapp shop/hello
  wasmctl release --all --dry-run
  wasmctl release --for webapps.example.dev --finalizer example.dev/webapp --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (o.kind == "") != (o.finalizer == "") {
				return usageError(cmd, errors.New("--for and --finalizer belong together"))
			}
			run := o.ofProcess
			if o.kind != "" {
				run = o.ofCluster
			}
			task := s.progress.Wait("waiting until the finalizer is off the objects")
			released, err := run(cmd.Context(), args)
			task.End()
			if errors.Is(err, errWantObjects) {
				return usageError(cmd, err)
			}
			if err != nil {
				return err
			}
			return o.report(released)
		},
	}
	o.bind(cmd)
	o.target.bind(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "Release all stranded objects; without a process, all objects with the finalizer")
	f.BoolVar(&o.dryRun, "dry-run", false, "Only print which objects would be released")
	f.StringVar(&o.kind, "for", "", "Without a process: the `kind` of the objects, in any form that kubectl accepts")
	f.StringVar(&o.finalizer, "finalizer", "", "Without a process: the `name` of the finalizer")
	return cmd
}

// ofProcess asks the running process.
func (o *releaseOptions) ofProcess(ctx context.Context, args []string) ([]admin.Released, error) {
	if o.all && o.target.namespace != "" {
		return nil, failure.Usage.Wrap(errors.New("--all: a running process knows its namespaces: omit --namespace"))
	}
	f, controller, keys, err := o.target.of(ctx, &o.steerOptions, args)
	switch {
	case f == nil:
		return nil, fmt.Errorf("%w; without a process, name the objects' kind with --for and the finalizer with --finalizer", err)
	case err != nil:
		return nil, err
	case o.all == (len(keys) > 0):
		return nil, errWantObjects
	}
	c, err := f.of(ctx, controller, keys)
	if err != nil {
		return nil, err
	}
	released, err := c.Release(ctx, controller, admin.Release{Objects: keys, All: o.all, DryRun: o.dryRun})
	return released, f.failed(ctx, controller, err)
}

// ofCluster connects to the cluster.
func (o *releaseOptions) ofCluster(ctx context.Context, args []string) ([]admin.Released, error) {
	if o.all == (len(args) > 0) {
		return nil, errWantObjects
	}
	finder, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	namespace := o.target.namespace
	keys, err := parseKeys(args, namespace)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if finder.Kind.Namespaced {
			keys[i].Namespace = cmp.Or(keys[i].Namespace, metav1.NamespaceDefault)
		}
	}
	for _, key := range keys {
		if _, err := finder.Named(ctx, key); err != nil {
			return nil, err
		}
	}
	if o.all {
		found, err := finder.All(ctx, namespace, nil)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; name a namespace with --namespace", err)
		}
		if err != nil {
			return nil, err
		}
		for i := range found {
			keys = append(keys, found[i].Key)
		}
	}
	return finder.Release(ctx, keys, o.dryRun), nil
}

// connect returns a Finder for the kind of the flags.
func (o *releaseOptions) connect(ctx context.Context) (*stranded.Finder, error) {
	config, err := requestConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return nil, err
	}
	lists, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	guess := &plan.Guess{Resolver: kinds.NewResolver(client, slog.New(slog.DiscardHandler))}
	kind, err := guess.Named(ctx, "--for", o.kind)
	if err != nil {
		return nil, err
	}
	api, err := kubeapi.New(kubeapi.Config{Client: client, Resolver: guess.Resolver, Controller: "release"})
	return &stranded.Finder{Client: lists, API: api, Kind: kind, Finalizer: o.finalizer}, err
}

// report prints the results. It returns an error if an object still has the finalizer.
func (o *releaseOptions) report(released []admin.Released) error {
	failed := 0
	for _, r := range released {
		done := "released "
		switch {
		case r.Error != "":
			failed++
			done = "failed "
		case r.Absent:
			done = "not found, or without the finalizer: "
		case o.dryRun:
			done = "would release "
		}
		line := done + r.Object
		if r.Deleting {
			line += " (its deletion was waiting)"
		}
		if r.Error != "" {
			line += ": " + r.Error
		}
		if _, err := fmt.Fprintln(o.streams.out, text.Line(line)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("the finalizer is still on %s", humanize.Plural(failed, "object"))
	}
	if len(released) == 0 {
		none := "no object outside of the watched set has the finalizer"
		if o.kind != "" {
			none = "no object has the finalizer"
		}
		_, err := fmt.Fprintln(o.streams.out, none)
		return err
	}
	return nil
}
