// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/ratelimiter"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestManager_SaysWhichOptionsHaveNoEffect: one line at debug level names
// options with a counterpart in the host, and one at info level those without.
// Options that are unset or disabled are not named.
func TestManager_SaysWhichOptionsHaveNoEffect(t *testing.T) {
	keep := func(obj any) (any, error) { return obj, nil }
	for _, test := range []struct {
		options     ctrl.Options
		controller  controller.Options
		debug, info string
	}{
		{},
		{options: ctrl.Options{HealthProbeBindAddress: "0", Metrics: metricsserver.Options{BindAddress: "0"}}},
		{
			options: ctrl.Options{LeaderElection: true, HealthProbeBindAddress: ":8081", PprofBindAddress: ":1"},
			debug:   "LeaderElection, HealthProbeBindAddress, PprofBindAddress",
		},
		{
			options: ctrl.Options{Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: keep}}}},
			info:    "Cache.Transform",
		},
		{
			options: ctrl.Options{MetricsBindAddress: ":8080", Port: 9443, SyncPeriod: new(time.Duration)},
			debug:   "Metrics, WebhookServer",
			info:    "Cache.SyncPeriod",
		},
		{
			controller: controller.Options{RateLimiter: ratelimiter.RateLimiter(workqueue.NewItemExponentialFailureRateLimiter(1, 1))}, //nolint:staticcheck // as before 0.19
			info:       "configmap: RateLimiter",
		},
		{
			controller: controller.Options{RateLimiter: workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()},
			info:       "configmap: RateLimiter",
		},
	} {
		var lines bytes.Buffer
		test.options.Logger = zap.New(zap.UseDevMode(true), zap.WriteTo(&lines))
		m := newManager(t, test.options)
		must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).WithOptions(test.controller).Complete(nothing))
		declared(t, m)
		want := ""
		if test.debug != "" {
			want += fmt.Sprintf("DEBUG the host has its own: these options have no effect options=%q\n", test.debug)
		}
		if test.info != "" {
			want += fmt.Sprintf("not available in a module: these options have no effect options=%q\n", test.info)
		}
		if lines.String() != want {
			t.Errorf("%s\nwant %s", lines.String(), want)
		}
	}
}

// TestManager_TheSchemeOfClientGoIsTheDefault: a program that imports
// client-go's scheme, as this test does, need not set it.
func TestManager_TheSchemeOfClientGoIsTheDefault(t *testing.T) {
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil || m.GetScheme() != clientgoscheme.Scheme {
		t.Errorf("%v, %v", m, err)
	}
	defer func(s *runtime.Scheme) { clientgoscheme.Scheme = s }(clientgoscheme.Scheme)
	clientgoscheme.Scheme = nil // as in a program without that import
	if _, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}); err == nil || !strings.Contains(err.Error(), "kubernetes/scheme") {
		t.Errorf("without a scheme: %v", err)
	}
	if _, err := client.New(ctrl.GetConfigOrDie(), client.Options{}); err == nil || !strings.Contains(err.Error(), "kubernetes/scheme") {
		t.Errorf("a client without a scheme: %v", err)
	}
}

// TestManager_RunsHaveTheBaseContext checks that Reconcile finds the values of
// BaseContext.
func TestManager_RunsHaveTheBaseContext(t *testing.T) {
	type key struct{}
	m := newManager(t, ctrl.Options{BaseContext: func() context.Context { return context.WithValue(context.Background(), key{}, "x") }})
	got := ""
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			got, _ = ctx.Value(key{}).(string)
			return reconcile.Result{}, nil
		})))
	guesttest.New(t, configMap("a")).Reconcile(declared(t, m), wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"})
	if got != "x" {
		t.Errorf("the value is %q", got)
	}
}

// TestIndex_LooksAtWhatIsNotWantedOnce: repeated lists find the objects with
// the value, and evaluate each version of the other objects once.
func TestIndex_LooksAtWhatIsNotWantedOnce(t *testing.T) {
	asked := map[string]int{}
	in(t, func(ctx context.Context, m ctrl.Manager, c client.Client) {
		must(t, m.GetFieldIndexer().IndexField(ctx, &corev1.Secret{}, "counted", func(o client.Object) []string {
			asked[o.GetName()]++
			return []string{o.GetLabels()["a"]}
		}))
		list := func(value string, want ...string) {
			t.Helper()
			var l corev1.SecretList
			must(t, c.List(ctx, &l, client.MatchingFields{"counted": value}))
			if got := names(l.Items); !slices.Equal(got, want) {
				t.Errorf("Secrets with %q: %v, want %v", value, got, want)
			}
		}
		for range 4 {
			list("1", "p")
		}
		if asked["q"] != 1 {
			t.Errorf("asked %d times for an object that has another value", asked["q"])
		}
		list("2", "q")
		must(t, c.Update(ctx, secret("p", "", map[string]string{"a": "2"})))
		clear(asked)
		for range 4 {
			list("1")
		}
		list("2", "p", "q")
		if asked["p"] != 2 || asked["q"] != 1 {
			t.Errorf("after a change of p: asked %v", asked)
		}
	}, secret("p", "", map[string]string{"a": "1"}), secret("q", "", map[string]string{"a": "2"}))
}

func names(items []corev1.Secret) (list []string) {
	for i := range items {
		list = append(list, items[i].Name)
	}
	return list
}

// TestManager_AServerHasNoEffect checks that a Server is accepted, and does not
// run.
func TestManager_AServerHasNoEffect(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	must(t, m.Add(&manager.Server{Name: "pprof"}))
	if err := m.Start(t.Context()); err == nil {
		t.Error("a manager without controllers has started")
	}
}
