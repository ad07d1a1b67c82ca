// SPDX-License-Identifier: Apache-2.0

package adapter_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	adapter "github.com/wasmctl/wasmctl/adapter/controller-runtime"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// reconciler is one as for controller-runtime: it reads with a client of its own.
type reconciler struct {
	client.Client

	seen    []string
	retried bool
}

func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var cm corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &cm); err != nil {
		r.seen = append(r.seen, req.Name+" is gone")
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.seen = append(r.seen, req.Name+" "+cm.Data["then"])
	switch cm.Data["then"] {
	case "requeueAfter":
		return reconcile.Result{RequeueAfter: time.Hour}, nil
	case "requeue":
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // the deprecated field still works
	case "terminal":
		return reconcile.Result{}, reconcile.TerminalError(errors.New("broken"))
	case "error":
		if r.retried = !r.retried; r.retried {
			return reconcile.Result{}, errors.New("broken")
		}
	}
	return reconcile.Result{}, nil
}

func TestNative_RunsAReconcilerOfControllerRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := memapi.New(memapi.Config{})
		config := &rest.Config{Host: "http://memory", Transport: api, QPS: -1}
		put := func(then string) {
			t.Helper()
			err := api.Put(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"then": then},
				"metadata": map[string]any{"name": "a", "namespace": "shop", "uid": "a"},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		put("requeueAfter")
		config.ContentType = "application/json"
		c, err := client.New(config, client.Options{HTTPClient: &http.Client{Transport: api}})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := wasmctl.New(config, wasmctl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- rt.Run(ctx) }()
		r := &reconciler{Client: c}
		added, err := rt.Add(ctx, adapter.Native("native", abi.Watch{Version: "v1", Kind: "ConfigMap"}, r), wasmctl.ControllerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var failed []error
		go func() {
			for result := range added.Results(ctx) { //nolint:errcheck // yields an error with each result
				if result.Failed {
					failed = append(failed, result.Err)
				}
			}
		}()
		sees := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			if diff := cmp.Diff(want, r.seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			r.seen = nil
		}
		sees(90*time.Minute, "a requeueAfter", "a requeueAfter")
		put("requeue")
		sees(1500*time.Millisecond, "a requeue", "a requeue")
		put("terminal")
		sees(time.Hour, "a terminal")
		if len(failed) != 1 || !errors.Is(failed[0], reconcile.TerminalError(nil)) || failed[0].Error() != "terminal error: broken" {
			t.Errorf("failures %v", failed)
		}
		put("error")
		sees(time.Minute, "a error", "a error")
		if err := c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		sees(time.Minute, "a is gone")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
