// SPDX-License-Identifier: Apache-2.0

// Package uninstall removes an installation of wasmctl from a cluster: first the Reconcilers, while a process can still finalize their
// objects, then the process, its rights, and the CRDs. It starts from any state of a removal that others have begun.
package uninstall

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// Object names an object.
type Object struct {
	GVR schema.GroupVersionResource
	Key abi.Key
}

// String returns the resource and the name.
func (o Object) String() string { return o.GVR.GroupResource().String() + " " + o.Key.String() }

// Reconciler is a Reconciler or a ClusterReconciler.
type Reconciler struct {
	Object

	// Version is its resourceVersion.
	Version  string
	Deleting bool
	// Orphan means that its objects keep their finalizers, as its deletion policy demands.
	Orphan bool
	// Waits is the message of its condition Ready.
	Waits string
}

// State contains everything in a cluster that belongs to an installation.
type State struct {
	// Objects are the objects with the labels of the installation.
	Objects []Object
	// Available means that a Deployment of the installation has a pod that is ready.
	Available bool
	// Runs means that the installation runs the controllers of a file. It then has neither Reconcilers nor CRDs.
	Runs bool
	// Helm means that Helm has created the installation.
	Helm bool
	// Others are other installations of wasmctl serve, as NAMESPACE/NAME. They need the Reconcilers and the CRDs.
	Others []string

	Reconcilers []Reconciler
	CRDs        []Object
}

// Action is the work of a Step.
type Action int

// Actions.
const (
	// DeleteReconcilers deletes Reconcilers, and waits while a process works on them.
	DeleteReconcilers Action = iota
	// DeleteWorkloads deletes objects, and waits until they and their pods are gone.
	DeleteWorkloads
	// Release takes the finalizers of wasmctl and of modules off, for all Reconcilers that are left.
	Release
	// Delete deletes objects, takes the finalizer of wasmctl serve off, and waits until they are gone.
	Delete
)

// Step is a step of a removal. The next one begins when it has succeeded.
type Step struct {
	Action  Action
	Objects []Object
}

// use is what an object of an installation is for.
type use int

const (
	workload use = iota
	webhook      // makes the API server call the process, so that requests fail without it
	right        // the process needs it for its work
)

// resources are the kinds of objects that an installation can have, in the order of their deletion.
var resources = []struct {
	gvr schema.GroupVersionResource
	use use
}{
	{gvr: deployments},
	{gvr: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}},
	{gvr: schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}},
	{gvr: schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "podmonitors"}},
	{gvr: schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"}},
	{gvr: schema.GroupVersionResource{Version: "v1", Resource: "services"}},
	{gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
	{gvr: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}},
	{validatingWebhooks, webhook},
	{mutatingWebhooks, webhook},
	{schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"}, right},
	{schema.GroupVersionResource{Group: rbac, Version: "v1", Resource: "rolebindings"}, right},
	{schema.GroupVersionResource{Group: rbac, Version: "v1", Resource: "roles"}, right},
	{clusterRoleBindings, right},
	{clusterRoles, right},
	{accounts, right},
}

const rbac = "rbac.authorization.k8s.io"

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// of returns the objects of the installation for a use, in the order of their deletion.
func (s *State) of(use use) (list []Object) {
	for _, r := range resources {
		for _, o := range s.Objects {
			if o.GVR == r.gvr && r.use == use {
				list = append(list, o)
			}
		}
	}
	return list
}

// has reports whether the installation has an object of each of the resources.
func (s *State) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(s.Objects, func(o Object) bool { return o.GVR.Resource == name })
	})
}

// exclusive reports whether the Reconcilers and the CRDs go with this installation.
func (s *State) exclusive() bool { return !s.Runs && len(s.Others) == 0 }

// misnamed reports whether the name of the installation is probably wrong: the cluster has nothing of it, but Reconcilers in use.
func (s *State) misnamed() bool {
	return s.exclusive() && len(s.Objects) == 0 && slices.ContainsFunc(s.Reconcilers, func(r Reconciler) bool { return !r.Deleting })
}

// Plan returns the steps that remove an installation. If force is set, it stops the process first, so nothing is cleaned up. Steps without
// objects are left out. It is pure.
func (s *State) Plan(force bool) (steps []Step) {
	add := func(a Action, objects []Object) {
		if len(objects) > 0 {
			steps = append(steps, Step{a, objects})
		}
	}
	var reconcilers, crds []Object
	if s.exclusive() {
		crds = s.CRDs
		for i := range s.Reconcilers {
			reconcilers = append(reconcilers, s.Reconcilers[i].Object)
		}
	}
	if !force {
		add(DeleteReconcilers, reconcilers)
	}
	add(DeleteWorkloads, s.of(workload))
	add(Delete, s.of(webhook)) // the process empties them when it stops, unless it was killed
	add(Release, reconcilers)
	add(Delete, s.of(right))
	add(Delete, crds)
	return steps
}

// quiet is how long no Reconciler may change before it is assumed that no process works on them, if no pod is ready.
const quiet = 5 * time.Second

// working reports whether a process probably works on Reconcilers that are being deleted. None of them has changed for the duration.
func (s *State) working(unchanged time.Duration) bool {
	able := s.Available && s.has("clusterroles", "clusterrolebindings", "serviceaccounts")
	return len(s.Reconcilers) > 0 && (able || unchanged < quiet)
}
