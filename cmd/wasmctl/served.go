// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// servedOptions are the flags of commands about Reconcilers in the cluster.
type servedOptions struct {
	kubeconfig flags.Kubeconfig
	namespace  string
}

// bind adds the flags that the command does not have already.
func (o *servedOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	if f.Lookup("kubeconfig") == nil {
		o.kubeconfig.Bind(cmd, "For a Reconciler: use this kubeconfig `file` (default: as wasmctl run)")
		f.Lookup("context").Usage = "For a Reconciler: use this `context` of the kubeconfig"
	}
	if f.Lookup("namespace") == nil {
		f.StringVarP(&o.namespace, "namespace", "n", "", "For a Reconciler: its `namespace` (default: that of the kubeconfig)")
	}
}

// servedName names a Reconciler or a ClusterReconciler.
type servedName struct{ kind, name string }

// servedKinds are the kinds by the names that people use.
var servedKinds = map[string]string{
	"reconciler": v1alpha1.KindNamespaced, "reconcilers": v1alpha1.KindNamespaced, "rec": v1alpha1.KindNamespaced,
	"clusterreconciler": v1alpha1.KindCluster, "clusterreconcilers": v1alpha1.KindCluster, "crec": v1alpha1.KindCluster,
}

func servedKind(word string) string {
	return servedKinds[strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.Group)]
}

// parseServed parses TYPE/NAME... and TYPE NAME... of Reconcilers. It reports false if the arguments
// have another form.
func parseServed(args []string) (list []servedName, ok bool) {
	if len(args) > 1 && servedKind(args[0]) != "" {
		for _, name := range args[1:] {
			list = append(list, servedName{servedKind(args[0]), name})
		}
		return list, !slices.ContainsFunc(args[1:], func(name string) bool { return name == "" || strings.Contains(name, "/") })
	}
	for _, arg := range args {
		word, name, found := strings.Cut(arg, "/")
		if !found || servedKind(word) == "" || name == "" || strings.Contains(name, "/") {
			return nil, false
		}
		list = append(list, servedName{servedKind(word), name})
	}
	return list, len(list) > 0
}

// served is a Reconciler or a ClusterReconciler in the cluster.
type served struct {
	text      string // TYPE/NAME, for messages
	api       dynamic.ResourceInterface
	name      string
	namespace string // empty for a ClusterReconciler
}

// open connects to the cluster. It sends no request.
func (o *servedOptions) open(of servedName) (*served, error) {
	config, err := requestConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, failure.Cluster.Wrap(err)
	}
	all := client.Resource(v1alpha1.GVR(of.kind))
	r := &served{text: strings.ToLower(of.kind) + "/" + of.name, api: all, name: of.name}
	if of.kind == v1alpha1.KindCluster {
		return r, nil
	}
	r.namespace, err = namespaceOr(o.namespace, o.kubeconfig)
	r.api = all.Namespace(r.namespace)
	return r, err
}

// flag returns the flag that names the namespace of the object.
func (r *served) flag() string {
	if r.namespace == "" {
		return ""
	}
	return " -n " + r.namespace
}

func (r *served) get(ctx context.Context) (*v1alpha1.Reconciler, error) {
	return r.decode(r.api.Get(ctx, r.name, metav1.GetOptions{}))
}

// patch changes the object.
func (r *served) patch(ctx context.Context, patch any) (*v1alpha1.Reconciler, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return r.decode(r.api.Patch(ctx, r.name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "wasmctl"}))
}

// decode decodes an answer. The fields that only a ClusterReconciler has are not needed here.
func (r *served) decode(u *unstructured.Unstructured, err error) (*v1alpha1.Reconciler, error) {
	if err != nil {
		return nil, r.explain(err)
	}
	o := &v1alpha1.Reconciler{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("%s: %w", r.text, err)
	}
	return o, nil
}

// explain classifies an error of the API server.
func (r *served) explain(err error) error {
	text := fmt.Errorf("%s: %w", r.text, err)
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsNotFound(err) && ok && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == ""):
		return failure.Kind.Wrap(fmt.Errorf("%w; install the kinds: wasmctl crds | kubectl apply -f -", text))
	case apierrors.IsNotFound(err) && r.namespace != "":
		return fmt.Errorf("%w in the namespace %s: name another one with -n", text, r.namespace)
	}
	return text
}
