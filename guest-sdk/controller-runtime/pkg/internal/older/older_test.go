// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_018 && wasmctl_before_019 && wasmctl_before_023

// Package older_test uses the symbols that differ before versions 0.18, 0.19
// and 0.23. TestAPI_OfOlderVersions runs its tests with all tags.
package older_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/ratelimiter"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// byName is a custom handler: it enqueues the object without the prefix "of-".
type byName struct{ handler.Funcs }

// Create implements handler.EventHandler.
func (byName) Create(_ context.Context, e event.CreateEvent, q workqueue.RateLimitingInterface) {
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: strings.TrimPrefix(e.Object.GetName(), "of-")}})
}

var (
	_ handler.EventHandler = byName{}
	// hidden hides one object.
	hidden = predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() != "hidden" })
	// nothing is a reconciler without an effect.
	nothing = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	// decoder is a pointer in these versions.
	decoder *admission.Decoder = admission.NewDecoder(scheme.Scheme)
)

func newManager(t *testing.T) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// check asserts that the controller reconciles ConfigMaps, and maps a created Secret to one.
func check(t *testing.T, c any) {
	t.Helper()
	declared, err := c.(declare.Declarer).Declare() //nolint:forcetypeassert // all controllers implement it
	if err != nil {
		t.Fatal(err)
	}
	r, err := declared.Reconciler(scheme.Scheme)
	if err != nil || r.Manifest.For.Kind != "ConfigMap" || len(r.Manifest.Watches) != 1 {
		t.Fatalf("%+v, %v", r.Manifest, err)
	}
	for name, want := range map[string]bool{"of-a": true, "hidden": false} {
		object, err := wasmctl.NewValue(&corev1.Secret{ObjectMeta: ctrl.ObjectMeta{Namespace: "default", Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		e := wasmctl.WatchEvent{Type: wasmctl.WatchUpdated, Version: "v1", Kind: "Secret", Key: wasmctl.ObjectKey{Namespace: "default", Name: name}, New: wasmctl.Object{Value: object}}
		if got := guesttest.New(t).Filter(r, e); got != want {
			t.Errorf("%s: kept %t", name, got)
		}
		if !want {
			continue
		}
		keys, err := guesttest.New(t).Map(r, e)
		if err != nil || len(keys) != 1 || keys[0] != (wasmctl.ObjectKey{Namespace: "default", Name: "a"}) {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
}

// TestWatch_HasTheHandlerBefore018: Watch takes the handler and the predicates,
// and source.Kind takes neither.
func TestWatch_HasTheHandlerBefore018(t *testing.T) {
	m := newManager(t)
	var limiter ratelimiter.RateLimiter = workqueue.DefaultControllerRateLimiter()
	c, err := controller.New("c", m, controller.Options{Reconciler: nothing, RateLimiter: limiter})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		c.Watch(source.Kind(m.GetCache(), &corev1.ConfigMap{}), &handler.EnqueueRequestForObject{}),
		c.Watch(source.Kind(m.GetCache(), &corev1.Secret{}), byName{}, hidden),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(t, c)
	err = c.Watch(&source.Channel{Source: make(chan event.GenericEvent)}, &handler.EnqueueRequestForObject{})
	if err == nil || !strings.Contains(err.Error(), "source.Channel") {
		t.Errorf("a channel: %v", err)
	}
}

// TestBuilder_RawSourcesHaveHandlersBefore018 includes the event filters of the
// builder.
func TestBuilder_RawSourcesHaveHandlersBefore018(t *testing.T) {
	m := newManager(t)
	c, err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).
		WatchesRawSource(source.Kind(m.GetCache(), &corev1.Secret{}), byName{}).WithEventFilter(hidden).Build(nothing)
	if err != nil {
		t.Fatal(err)
	}
	check(t, c)
}

// TestHandler_WritesToAQueueOfAnything uses Watches of a builder.
func TestHandler_WritesToAQueueOfAnything(t *testing.T) {
	c, err := ctrl.NewControllerManagedBy(newManager(t)).For(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.Funcs{CreateFunc: byName{}.Create}, builder.WithPredicates(hidden)).Build(nothing)
	if err != nil {
		t.Fatal(err)
	}
	check(t, c)
}

// TestDecoder_IsAPointer checks that the pointer decodes the object of a
// request.
func TestDecoder_IsAPointer(t *testing.T) {
	text, err := json.Marshal(&corev1.Secret{Type: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var s corev1.Secret
	req := admission.Request{}
	req.Object = runtime.RawExtension{Raw: text}
	if err := decoder.Decode(req, &s); err != nil || s.Type != "x" {
		t.Errorf("%v, %v", s.Type, err)
	}
}

// selfmade is a type that has its own defaults, and validates itself.
type selfmade struct{ corev1.Secret }

var (
	_ webhook.Defaulter = &selfmade{}
	_ webhook.Validator = &selfmade{}
)

func (s *selfmade) DeepCopyObject() runtime.Object { return &selfmade{*s.DeepCopy()} }
func (s *selfmade) Default()                       { s.Type = "set" }
func (s *selfmade) ValidateCreate() (admission.Warnings, error) {
	return nil, errors.New("create " + s.Name)
}

func (s *selfmade) ValidateUpdate(old runtime.Object) (admission.Warnings, error) {
	return nil, errors.New("update " + old.(*selfmade).Name + " " + s.Name) //nolint:forcetypeassert // the same type
}

func (s *selfmade) ValidateDelete() (admission.Warnings, error) {
	return nil, errors.New("delete " + s.Name)
}

// custom is a defaulter and a validator of any type.
type custom struct{}

func (custom) Default(_ context.Context, o runtime.Object) error {
	o.(*corev1.Secret).Type = "custom" //nolint:forcetypeassert // the type of the webhook
	return nil
}

func (custom) ValidateCreate(context.Context, runtime.Object) (admission.Warnings, error) {
	return nil, errors.New("custom")
}

func (custom) ValidateUpdate(context.Context, runtime.Object, runtime.Object) (admission.Warnings, error) {
	return nil, nil
}

func (custom) ValidateDelete(context.Context, runtime.Object) (admission.Warnings, error) {
	return nil, nil
}

// TestWebhook_OfTheTypeItself, or with a defaulter and a validator, as before
// 0.23.
func TestWebhook_OfTheTypeItself(t *testing.T) {
	m := newManager(t)
	own := runtime.NewScheme()
	own.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Own"}, &selfmade{})
	n, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: own})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		ctrl.NewWebhookManagedBy(n).For(&selfmade{}).RecoverPanic().Complete(),
		ctrl.NewWebhookManagedBy(m).For(&corev1.Secret{}).WithDefaulter(custom{}).WithValidator(custom{}).Complete(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		in                     ctrl.Manager
		path, operation, wants string
	}{
		{n, "/mutate-example-com-v1-own", "CREATE", "[{replace /type set}]"},
		{n, "/validate-example-com-v1-own", "CREATE", "create new"},
		{n, "/validate-example-com-v1-own", "UPDATE", "update old new"},
		{n, "/validate-example-com-v1-own", "DELETE", "delete old"},
		{m, "/mutate--v1-secret", "CREATE", "[{replace /type custom}]"},
		{m, "/validate--v1-secret", "CREATE", "custom"},
	} {
		hook, _ := c.in.GetWebhookServer().WebhookMux().Handler(&http.Request{URL: &url.URL{Path: c.path}})
		req := admission.Request{}
		req.Operation = admissionv1.Operation(c.operation)
		req.Object.Raw, req.OldObject.Raw = []byte(`{"metadata":{"name":"new"},"type":"x"}`), []byte(`{"metadata":{"name":"old"},"type":"x"}`)
		res := hook.(*admission.Webhook).Handle(t.Context(), req) //nolint:forcetypeassert // as registered
		got := res.Result.Message
		for _, op := range res.Patches {
			if op.Path == "/type" {
				got = fmt.Sprintf("[{%s %s %v}]", op.Operation, op.Path, op.Value)
			}
		}
		if got != c.wants {
			t.Errorf("%s %s: %q, want %q", c.path, c.operation, got, c.wants)
		}
	}
	if err := ctrl.NewWebhookManagedBy(m).For(&corev1.Pod{}).WithDefaulter(custom{}).WithValidator(custom{}).WithCustomPath("/x").Complete(); err == nil {
		t.Error("one path for two webhooks is no error")
	}
}
