// SPDX-License-Identifier: Apache-2.0

// Clientgo is an operator in an older style. It uses clients of client-go in
// addition to the manager's, with configurations that client-go finds. For each
// labeled ConfigMap it maintains a Secret of the same name, and records its
// observations in that Secret and in an event from its own broadcaster. If the
// cluster has Widgets, it maintains one of these, too. The label and its
// namespace are in files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var widgetKind = schema.GroupVersionKind{Group: "optional.example.com", Version: "v1", Kind: "Widget"}

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;create;update;patch;delete
// +kubebuilder:rbac:groups=optional.example.com,resources=widgets,verbs=get;list;watch;create

type reconciler struct {
	client.Client
	kube   *kubernetes.Clientset
	others dynamic.Interface
	events record.EventRecorder
	label  string
}

func main() {
	config := flag.String("config", "", "")
	flag.Parse()
	label, err := os.ReadFile(*config)
	must(err)
	if _, err := os.ReadFile("/etc/nothing"); !os.IsNotExist(err) {
		must(fmt.Errorf("there is a file, or no file system: %w", err))
	}
	scheme := runtime.NewScheme()
	must(corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(widgetKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(widgetKind.GroupVersion().WithKind("WidgetList"), &unstructured.UnstructuredList{})
	before(scheme)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	must(err)
	pods, err := mgr.GetCache().GetInformer(context.Background(), &corev1.Pod{})
	must(err)
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{})
	must(err)
	kube := kubernetes.NewForConfigOrDie(mgr.GetConfig())
	r := &reconciler{Client: mgr.GetClient(), kube: kube, others: dynamic.NewForConfigOrDie(found()), events: recorder(kube, scheme), label: string(label)}
	b := ctrl.NewControllerManagedBy(mgr).Named(os.Getenv("NAME")).For(&corev1.ConfigMap{})
	if has(mgr, kube) {
		b.Owns(widget("", ""))
	}
	must(b.Complete(r))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}

// found returns the configuration that client-go finds on its own.
func found() *rest.Config {
	cfg, err := rest.InClusterConfig()
	must(err)
	loaded, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	must(err)
	if loaded.Host != cfg.Host {
		must(fmt.Errorf("hosts %s and %s", cfg.Host, loaded.Host))
	}
	return loaded
}

// before calls the API server before there is a manager: the kinds of
// Kubernetes exist, and the only objects are those of settings.yaml. Writes
// have no effect, as the build sets.
func before(scheme *runtime.Scheme) {
	ctx := context.Background()
	groups, err := kubernetes.NewForConfigOrDie(ctrl.GetConfigOrDie()).Discovery().ServerGroups()
	must(err)
	names := map[string]bool{}
	for _, g := range groups.Groups {
		names[g.Name] = true
	}
	if !names["apps"] || names[widgetKind.Group] {
		must(fmt.Errorf("groups: %v", names))
	}
	c, err := client.New(found(), client.Options{Scheme: scheme})
	must(err)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kube-root-ca.crt"}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
		must(fmt.Errorf("get: %w", err))
	}
	cm.Name = "clientgo"
	must(c.Create(ctx, cm))
	if err := c.Update(ctx, cm); !apierrors.IsNotFound(err) {
		must(fmt.Errorf("update: %w", err))
	}
	for want, opts := range [][]client.ListOption{{client.InNamespace("other")}, {client.MatchingLabels{"of": "clientgo"}}} {
		var all corev1.ConfigMapList
		must(c.List(ctx, &all, opts...))
		if len(all.Items) != want {
			must(fmt.Errorf("list %v: there are %v", opts, all.Items))
		}
	}
	cm.Name = "settings"
	if must(c.Get(ctx, client.ObjectKeyFromObject(cm), cm)); cm.Data["a"] != "b" {
		must(fmt.Errorf("settings: %v", cm.Data))
	}
}

// has looks up Widgets, and Gadgets, which the build declares missing.
func has(mgr ctrl.Manager, kube *kubernetes.Clientset) bool {
	if _, err := mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: widgetKind.Group, Kind: "Gadget"}, "v1"); !meta.IsNoMatchError(err) {
		must(fmt.Errorf("there are Gadgets: %w", err))
	}
	list, err := kube.Discovery().ServerResourcesForGroupVersion(widgetKind.GroupVersion().String())
	must(err)
	return len(list.APIResources) == 1 && list.APIResources[0].Name == "widgets"
}

func recorder(kube *kubernetes.Clientset, scheme *runtime.Scheme) record.EventRecorder {
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return b.NewRecorder(scheme, corev1.EventSource{Component: "clientgo"})
}

func widget(namespace, name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace(namespace)
	w.SetName(name)
	return w
}

// keepWidget reports the previous state.
func (r *reconciler) keepWidget(ctx context.Context, owner *corev1.ConfigMap) (string, error) {
	w := widget(owner.Namespace, owner.Name)
	err := r.Get(ctx, client.ObjectKeyFromObject(w), w)
	switch {
	case meta.IsNoMatchError(err):
		return "no such kind", nil
	case apierrors.IsNotFound(err):
		if err := controllerutil.SetControllerReference(owner, w, r.Scheme()); err != nil {
			return "", err
		}
		return "made", r.Create(ctx, w)
	}
	return "there", err
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
	version, err := r.kube.Discovery().ServerVersion()
	if err != nil {
		return reconcile.Result{}, err
	}
	_, denied := r.kube.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
	found, err := r.keepWidget(ctx, &list.Items[0])
	if err != nil {
		return reconcile.Result{}, err
	}
	r.events.Event(&list.Items[0], corev1.EventTypeNormal, "Widget", found)
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return reconcile.Result{}, err
	}
	note := fmt.Sprintf("%d labelled, data %v, version %s, denied %t, in %s", len(list.Items), u.Object["data"], version.Major, apierrors.IsForbidden(denied), namespace)
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
