// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// siteReconciler reconciles a Site.
type siteReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder record.EventRecorder
}

// +kubebuilder:rbac:groups=apps.wasmctl.test,resources=sites,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps.wasmctl.test,resources=sites/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete

// Reconcile maintains the Deployment of a Site.
func (r *siteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	log := logf.FromContext(ctx)
	site := &Site{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	found := &appsv1.Deployment{}
	err := r.Get(ctx, req.NamespacedName, found)
	if apierrors.IsNotFound(err) {
		dep, err := r.deployment(site)
		if err != nil {
			return ctrl.Result{}, err
		}
		log.Info("creating a Deployment", "image", site.Spec.Image)
		if err := r.Create(ctx, dep); err != nil {
			return ctrl.Result{}, err
		}
		r.Recorder.Event(site, "Normal", "Created", fmt.Sprintf("created Deployment %s", dep.Name))
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	want, err := r.deployment(site)
	if err != nil {
		return ctrl.Result{}, err
	}
	if *found.Spec.Replicas != *want.Spec.Replicas || found.Spec.Template.Spec.Containers[0].Image != site.Spec.Image {
		log.V(1).Info("the Deployment differs", "replicas", cmp.Diff(*want.Spec.Replicas, *found.Spec.Replicas))
		found.Spec.Replicas = want.Spec.Replicas
		found.Spec.Template.Spec.Containers[0].Image = site.Spec.Image
		return ctrl.Result{}, r.Update(ctx, found)
	}
	before := site.DeepCopyObject().(*Site) //nolint:forcetypeassert // a copy
	site.Status.ReadyReplicas = found.Status.ReadyReplicas
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, Reason: "Deployed", Message: "the Deployment is there", ObservedGeneration: site.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, site, client.MergeFrom(before))
}

func (r *siteReconciler) deployment(site *Site) (*appsv1.Deployment, error) {
	labels := map[string]string{"site": site.Name}
	replicas := int32(1)
	if site.Spec.Replicas != nil {
		replicas = *site.Spec.Replicas
	}
	dep := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: site.Spec.Image}}},
			},
		},
	}
	return dep, ctrl.SetControllerReference(site, dep, r.Scheme)
}

// SetupWithManager registers the controller.
func (r *siteReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Site{}).Owns(&appsv1.Deployment{}).Named("site").Complete(r)
}
