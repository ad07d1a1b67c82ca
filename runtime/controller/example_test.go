// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// native is a module that is written in Go and compiled in.
type native struct{}

// Acquire implements applier.Module.
func (native) Acquire(context.Context) (guest abi.Guest, release func(), err error) {
	return native{}, func() {}, nil
}

// Revision implements abi.Guest: this module is never replaced.
func (native) Revision() uint64 { return 1 }

// Fuel implements abi.Guest: this module is not metered.
func (native) Fuel() int64 { return 0 }

// Reconcile implements abi.Guest. Its object is msgpack, or nil if it is gone.
func (native) Reconcile(_ context.Context, req *abi.Request) (abi.Result, error) {
	fmt.Println("reconcile", req.Key, "attempt", req.Attempt)
	return abi.Result{Action: abi.Action{Requeue: true, After: 10 * time.Minute}}, nil
}

// Finalize implements abi.Guest; it is called if Config.Finalizer is set.
func (native) Finalize(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{}, nil }

// ErrorPolicy implements abi.Guest: the controller's back-off decides.
func (native) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// A controller of the Deployments that follows their ReplicaSets too, in a
// program of one's own. kube-rs writes it as
//
//	Controller::new(deployments, cfg).owns(replicasets, cfg)
//	    .reconcile_all_on(every_hour).shutdown_on_signal()
//	    .run(reconcile, error_policy, context).for_each(|result| ...)
//
// and controller-runtime as
//
//	NewControllerManagedBy(mgr).For(&Deployment{}).Owns(&ReplicaSet{}).Complete(r)
func Example() {
	var watches *watcher.Set // one for all controllers of the process: see watcher.NewSet

	hourly, err := trigger.NewResync(time.Hour)
	if err != nil {
		panic(err)
	}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	c, err := controller.New(controller.Config{
		Config: applier.Config{
			Controller: "deployments", Module: native{},
			Observer: printed(func(o *applier.Outcome) { // the stream of results
				fmt.Println(o.Key, o.Action, o.Err)
			}),
		},
		Watches: watches,
		For: controller.Watch{
			Kind: apps.WithKind("Deployment"), Resource: apps.WithResource("deployments"), Predicates: []string{"generation", "labels"},
		},
		Related: []controller.Watch{{
			Kind: apps.WithKind("ReplicaSet"), Resource: apps.WithResource("replicasets"), MetadataOnly: true,
			Map: queue.Owners{Group: "apps", Kind: "Deployment", Resource: "replicasets.apps"}.Map,
		}},
		Triggers: []trigger.Source{hourly},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := c.Run(ctx, nil); err != nil { // returns when running reconciles have ended
		panic(err)
	}
}

// printed observes only the ends of runs.
type printed func(*applier.Outcome)

func (printed) Started(*applier.Started)     {}
func (printed) Returned(string)              {}
func (f printed) Ended(out *applier.Outcome) { f(out) }
