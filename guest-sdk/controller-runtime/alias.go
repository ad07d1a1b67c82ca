// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime has the names that programs import as ctrl.
package controllerruntime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Aliases for the types that programs use most.
type (
	// Builder builds a controller.
	Builder = builder.Builder
	// Request names the object to reconcile.
	Request = reconcile.Request
	// Result determines what happens after a run.
	Result = reconcile.Result
	// Manager has the parts that the controllers of a module share.
	Manager = manager.Manager
	// Options are the options of a manager.
	Options = manager.Options
	// SchemeBuilder collects the types of a group and version.
	SchemeBuilder = scheme.Builder
	// GroupVersion is a group and version.
	GroupVersion = schema.GroupVersion
	// GroupResource is a resource without a version.
	GroupResource = schema.GroupResource
	// TypeMeta is apiVersion and kind.
	TypeMeta = metav1.TypeMeta
	// ObjectMeta is the metadata of an object.
	ObjectMeta = metav1.ObjectMeta
)

// The functions that programs use most; see their packages.
var (
	RegisterFlags          = config.RegisterFlags
	GetConfigOrDie         = config.GetConfigOrDie
	GetConfig              = config.GetConfig
	NewControllerManagedBy = builder.ControllerManagedBy
	NewManager             = manager.New
	CreateOrPatch          = controllerutil.CreateOrPatch
	CreateOrUpdate         = controllerutil.CreateOrUpdate
	SetControllerReference = controllerutil.SetControllerReference
	SetupSignalHandler     = signals.SetupSignalHandler
	Log                    = log.Log
	LoggerFrom             = log.FromContext
	LoggerInto             = log.IntoContext
	SetLogger              = log.SetLogger
)
