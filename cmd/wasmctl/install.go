// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// installOptions are the flags of install.
type installOptions struct {
	manifests    manifestsOptions
	dryRun, wait bool
	timeout      time.Duration
}

func newCmdInstall(s streams) *cobra.Command {
	o := &installOptions{manifests: manifestsOptions{streams: s, serve: true, modules: deploy.FromConfigMap, output: outputYAML}}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install wasmctl serve in a cluster",
		Long: `Applies the objects of wasmctl manifests --serve, server-side, and waits until the process is ready. A second call changes an
installation, or upgrades it: the CRDs come first. wasmctl check shows beforehand whether the cluster is fit.

Objects that only other flags need are not deleted, such as the PodDisruptionBudget after --replicas 1.

The exit code is 0 if the process is ready; 1 if it is not after --timeout; 4 if the API server does not answer; 6 without the rights.`,
		Example: `  wasmctl install --image registry.example/wasmctl:1.0
  wasmctl install --image registry.example/wasmctl:1.0 --replicas 3 --shards
  wasmctl install --image registry.example/wasmctl:1.0 --dry-run`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.manifests.validate(); err != nil {
				return usageError(cmd, err)
			}
			if o.timeout <= 0 {
				return usageError(cmd, fmt.Errorf("--timeout %v: want more than 0", o.timeout))
			}
			if o.dryRun {
				return runManifests(cmd.Context(), &o.manifests)
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.manifests.bindServe(cmd)
	f.Lookup("kubeconfig").Usage = "Use this kubeconfig `file`"
	f.BoolVar(&o.dryRun, "dry-run", false, "Only print the objects")
	f.BoolVar(&o.wait, "wait", true, "Wait until the process is ready")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "Wait for at most this long")
	return cmd
}

// ofPod are the flags of wasmctl serve that the objects of an installation set, or that name files.
var ofPod = append([]string{
	"dev", "dev-data-dir", "cache-dir", "state-dir", "socket", "log-format", "metrics-address", "health-address", "registry-ca", "verify-key",
	"leader-elect", "leader-elect-resource-namespace", "leader-elect-resource-name",
}, flags.WebhookFlags...)

// bindServe adds the flags that also apply to wasmctl serve, and the flags of wasmctl serve itself.
func (o *manifestsOptions) bindServe(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.installed.Image, "image", "wasmctl:"+version, "Run this container `image`")
	f.StringVar(&o.installed.Name, "name", "wasmctl", "Name the objects")
	f.StringVarP(&o.installed.Namespace, "namespace", "n", "wasmctl-system", "Create the objects in this `namespace`")
	f.Int32Var(&o.installed.Replicas, "replicas", 1, "Run this many replicas; 2 or more elect a leader")
	f.IntVar(&o.installed.Shards, "shards", 0, "Let all replicas reconcile, and share the objects, split into `N` parts, instead of electing a leader")
	f.Lookup("shards").NoOptDefVal = strconv.Itoa(deploy.DefaultShards)
	f.Int32Var(&o.installed.MaxReplicas, "max-replicas", 0, "With --shards: add a HorizontalPodAutoscaler that adds replicas up to this many")
	f.BoolVar(&o.installed.Webhooks, "webhooks", false, "Serve the webhooks of modules, and give the processes the rights to register them")
	f.BoolVar(&o.podMonitor, "pod-monitor", false, "Add a PodMonitor, as the last object, for clusters with the Prometheus operator")
	o.process.Kubeconfig.Bind(cmd, "Use this kubeconfig `file` to look up kinds")
	serve := &cobra.Command{}
	serve.Flags().SortFlags = false
	o.served.bind(serve)
	serve.Flags().VisitAll(func(flag *pflag.Flag) {
		if f.Lookup(flag.Name) == nil && !slices.Contains(ofPod, flag.Name) {
			flag.Usage = "wasmctl serve: " + strings.ToLower(flag.Usage[:1]) + flag.Usage[1:]
			f.AddFlag(flag)
			o.passed = append(o.passed, flag)
		}
	})
}

// validateServe validates the flags of wasmctl serve.
func (o *manifestsOptions) validateServe() error {
	if o.serve {
		o.served.run.process.Leader.Shards = o.installed.Shards
		return errors.Join(o.served.complete(true), o.served.checkWebhooks(o.installed.Webhooks, o.installed.Replicas > 1 || o.installed.Shards > 0))
	}
	for _, flag := range o.passed {
		if flag.Changed {
			return fmt.Errorf("--%s needs --serve", flag.Name)
		}
	}
	return nil
}

// serveArgs returns the arguments of wasmctl serve for the flags that were given, except those that the
// Config has fields for.
func (o *manifestsOptions) serveArgs() (args []string) {
	for _, flag := range o.passed {
		if !flag.Changed || flag.Name == "share" || flag.Name == "registry-allow" {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	}
	return args
}

func (o *installOptions) run(ctx context.Context) error {
	config, err := requestConfig(o.manifests.process.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := o.manifests.config(ctx)
	if err != nil {
		return err
	}
	objects, err := c.Unstructured()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := o.apply(ctx, client, object); err != nil {
			return err
		}
	}
	if !o.wait {
		return nil
	}
	return o.await(ctx, client.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(c.Namespace), c.Name)
}

// apply applies an object, and prints that.
func (o *installOptions) apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	gvr, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind()) // right for all kinds of an installation
	applied, err := client.Resource(gvr).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "wasmctl-install", Force: true})
	if err != nil {
		return fmt.Errorf("%s[%s]: apply: %w", gvr.GroupResource(), object.GetName(), err)
	}
	if applied.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s[%s]: apply: it is being deleted: wait until that has ended, or end it with wasmctl uninstall, and try again", gvr.GroupResource(), object.GetName())
	}
	_, err = fmt.Fprintf(o.manifests.streams.out, "applied %s %s\n", gvr.GroupResource(), object.GetName())
	return err
}

// await waits until a Deployment has only ready pods of its last version.
func (o *installOptions) await(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not ready after %v", o.timeout))
	defer cancel()
	waits := "not seen yet"
	err := o.manifests.streams.progress.Await(ctx, time.Second, func(ctx context.Context) (stage, what string, err error) {
		object, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", "", fmt.Errorf("deployment[%s]: get: %w", name, err)
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
			return "", "", err
		}
		if waits = unready(d); waits == "" {
			return "", "", nil
		}
		return "ready", "waiting until the process is ready: " + waits, nil
	})
	switch {
	case err == nil:
		_, err = fmt.Fprintln(o.manifests.streams.out, "wasmctl serve is ready")
	case ctx.Err() != nil:
		err = fmt.Errorf("deployment[%s]: %w: %s; see kubectl -n %s describe pods", name, err, waits, o.manifests.installed.Namespace)
	}
	return err
}

// unready returns the reason why a Deployment is not complete, or "".
func unready(d *appsv1.Deployment) string {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	st := &d.Status
	if st.ObservedGeneration >= d.Generation && st.UpdatedReplicas >= want && st.AvailableReplicas >= want && st.Replicas == st.UpdatedReplicas {
		return ""
	}
	texts := []string{fmt.Sprintf("%d of %d pods are ready", min(st.AvailableReplicas, st.UpdatedReplicas), want)}
	for _, c := range st.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			texts = append(texts, c.Message)
		}
	}
	return strings.Join(texts, ": ")
}
