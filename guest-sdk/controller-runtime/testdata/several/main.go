// SPDX-License-Identifier: Apache-2.0

// Command several has two controllers, for tests: one copies ConfigMaps with a
// label, and the other counts them in an annotation of each Secret that
// requests it. In addition, it counts seconds in another annotation of these.
package main

import (
	"context"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;update;patch;delete

const copyLabel = "several.wasmctl.test/copy"

func main() {
	scheme := runtime.NewScheme()
	must(corev1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	must(err)
	must(mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.ConfigMap{}, "copyOf", func(o client.Object) []string {
		if of := o.GetLabels()[copyLabel]; of != "" {
			return []string{of}
		}
		return nil
	}))
	c := mgr.GetClient()
	must(ctrl.NewControllerManagedBy(mgr).Named("copies").
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetAnnotations()["copy"] != ""
		}))).
		Owns(&corev1.ConfigMap{}).
		Complete(reconcile.AsReconciler(c, copies{c})))
	must(ctrl.NewControllerManagedBy(mgr).Named("counts").
		For(&corev1.Secret{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			var all corev1.SecretList
			if err := c.List(ctx, &all, client.InNamespace(o.GetNamespace()), client.HasLabels{"counts"}); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "list Secrets")
			}
			var list []reconcile.Request
			for _, s := range all.Items {
				list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}})
			}
			return list
		})).
		Complete(reconcile.AsReconciler(c, counts{c})))
	must(mgr.Add(beats{c}))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "cannot start")
		os.Exit(1)
	}
}

type copies struct{ client.Client }

// Reconcile copies a ConfigMap under another name.
func (r copies) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
	to := cm.Annotations["copy"]
	if to == "" {
		return reconcile.Result{}, nil
	}
	out := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: to}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, out, func() error {
		out.Labels, out.Data = map[string]string{copyLabel: cm.Name}, cm.Data
		return controllerutil.SetControllerReference(cm, out, r.Scheme())
	})
	return reconcile.Result{}, err
}

type counts struct{ client.Client }

// Reconcile writes the number of copies of "a" into a Secret.
func (r counts) Reconcile(ctx context.Context, s *corev1.Secret) (reconcile.Result, error) {
	if _, ok := s.Labels["counts"]; !ok {
		return reconcile.Result{}, nil
	}
	var all corev1.ConfigMapList
	if err := r.List(ctx, &all, client.InNamespace(s.Namespace), client.MatchingFields{"copyOf": "a"}); err != nil {
		return reconcile.Result{}, err
	}
	n := strconv.Itoa(len(all.Items))
	if s.Annotations["copies"] == n {
		return reconcile.Result{}, nil
	}
	base := s.DeepCopy()
	s.Annotations = map[string]string{"copies": n}
	return reconcile.Result{}, r.Patch(ctx, s, client.MergeFrom(base))
}

type beats struct{ client.Client }

// Start counts seconds in each of these Secrets.
func (r beats) Start(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		var all corev1.SecretList
		if err := r.List(ctx, &all, client.HasLabels{"counts"}); err != nil {
			return err
		}
		for _, s := range all.Items {
			base := s.DeepCopy()
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, "beats", strconv.Itoa(n))
			if err := r.Patch(ctx, &s, client.MergeFrom(base)); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
