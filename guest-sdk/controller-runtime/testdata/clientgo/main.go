// Clientgo is an operator that uses clients of client-go beside the manager's: for
// each ConfigMap that is labelled, it keeps a Secret of the same name, and writes
// into it what it has seen.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;create;update;patch;delete

type reconciler struct {
	kube   *kubernetes.Clientset
	others dynamic.Interface
	label  string
}

func main() {
	label := flag.String("label", "", "")
	flag.Parse()
	scheme := runtime.NewScheme()
	must(corev1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	must(err)
	r := &reconciler{kube: kubernetes.NewForConfigOrDie(mgr.GetConfig()), others: dynamic.NewForConfigOrDie(mgr.GetConfig()), label: *label}
	must(ctrl.NewControllerManagedBy(mgr).Named(os.Getenv("NAME")).For(&corev1.ConfigMap{}).Complete(r))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}

// Reconcile uses no context of its own, as many programs do.
func (r *reconciler) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx := context.TODO()
	secrets := r.kube.CoreV1().Secrets(req.Namespace)
	list, err := r.kube.CoreV1().ConfigMaps(req.Namespace).List(ctx, metav1.ListOptions{LabelSelector: r.label})
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(list.Items) == 0 {
		err := secrets.Delete(ctx, req.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return reconcile.Result{}, err
	}
	if _, err := secrets.Get(ctx, req.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: req.Name}, StringData: map[string]string{"k": "v"}}
		if _, err := secrets.Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return reconcile.Result{}, err
		}
	} else if err != nil {
		return reconcile.Result{}, err
	}
	u, err := r.others.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	if err != nil {
		return reconcile.Result{}, err
	}
	_, version := r.kube.Discovery().ServerVersion()
	_, denied := r.kube.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
	note := fmt.Sprintf("%d labelled, data %v, version %t, denied %t", len(list.Items), u.Object["data"], apierrors.IsNotFound(version), apierrors.IsForbidden(denied))
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"note":%q}}}`, note)
	_, err = secrets.Patch(ctx, req.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return reconcile.Result{}, err
}

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "stops")
		os.Exit(1)
	}
}
