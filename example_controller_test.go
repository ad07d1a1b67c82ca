// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// The results of a controller's runs can be counted, or waited for.
func ExampleController_Results() {
	var ctx context.Context
	var c *wasmctl.Controller // of Load, Ensure or Add

	for r, err := range c.Results(ctx) {
		if lost, ok := errors.AsType[*wasmctl.LostError](err); ok {
			log.Printf("%d results were lost", lost.Count)
			continue
		}
		switch {
		case r.Failed:
			log.Printf("%s failed after %s: %v; again in %s", r.Object, r.Duration(), r.Err, r.Action.After)
		case errors.Is(r.Err, wasmctl.ErrPaused):
			log.Printf("%s is paused", r.Object)
		}
	}
}

// The objects of the reconciled kind are read from the watch, without a request.
func ExampleController_Store() {
	var ctx context.Context
	var c *wasmctl.Controller // of Load, Ensure or Add

	store := c.Store() // also before the controller runs
	if err := store.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	pod, err := store.Get(abi.Key{Namespace: "shop", Name: "web-0"})
	if err != nil || pod == nil {
		log.Fatal("not there: ", err)
	}
	front, err := store.List(wasmctl.ListOptions{Namespace: "shop", Selector: labels.SelectorFromSet(labels.Set{"tier": "front"})})
	if err != nil {
		log.Fatal(err)
	}
	neighbors, err := store.ByIndex("spec.nodeName", "node-1")
	fmt.Println(pod.GetName(), len(front), len(neighbors), err)
}

// A program asks for reconciles when something outside of the cluster changes.
func ExampleReconcileOn() {
	var ctx context.Context
	var rt *wasmctl.Runtime

	changed := make(chan abi.Key)             // one object for each key
	daily := time.NewTicker(24 * time.Hour).C // all objects for each value
	_, err := rt.Load(ctx, wasmctl.File("greeter.wasm"), wasmctl.ControllerOptions{
		ControllerSpec: v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Grant: &v1alpha1.Grant{Manifest: true}}},
		Triggers:       []wasmctl.Trigger{wasmctl.ReconcileOn(changed), wasmctl.ReconcileAllOn(daily)},
	})
	if err != nil {
		log.Fatal(err)
	}
	select {
	case changed <- abi.Key{Namespace: "shop", Name: "greeting"}: // when the controller runs
	case <-ctx.Done():
	}
}

// A native reconciler of ConfigMaps reacts only to changes of their data, and to Secrets that
// name a ConfigMap in a label.
func ExampleNative() {
	_ = wasmctl.Native{
		Name:    "greeter",
		For:     abi.Watch{Version: "v1", Kind: "ConfigMap", Predicates: []string{"func"}},
		Watches: []abi.Watch{{Version: "v1", Kind: "Secret", Map: "func"}},
		Filter: func(_ context.Context, e *wasmctl.Event) (bool, error) {
			var before, after corev1.ConfigMap
			existed, err := e.DecodeOld(&before)
			if err != nil || !existed {
				return true, err
			}
			exists, err := e.DecodeNew(&after)
			return !exists || before.Data["text"] != after.Data["text"], err
		},
		Map: func(_ context.Context, e *wasmctl.Event) ([]abi.Key, error) {
			var secret corev1.Secret
			if exists, err := e.DecodeNew(&secret); err != nil || !exists {
				return nil, err
			}
			return []abi.Key{{Name: secret.Labels["greeter"]}}, nil // of the Secret's namespace
		},
		Reconcile: func(context.Context, *wasmctl.Request) (wasmctl.Action, error) {
			return wasmctl.Action{Requeue: true, After: time.Hour}, nil
		},
	}
}
