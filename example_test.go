// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// A program runs a module and a reconciler in Go on the same watches, and
// replaces the module while it runs.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := devclustertest.Get() // a real API server; yours comes from clientcmd
	if err != nil {
		log.Fatal(err)
	}
	rt, err := wasmctl.New(cluster.RESTConfig(), wasmctl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx) }() // returns when everything that it started has ended

	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "embedding-"}}
	if ns, err = client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	c, err := rt.Load(ctx, wasmctl.File("testdata/wasm/empty.wasm"), wasmctl.ControllerOptions{
		ControllerSpec: v1alpha1.ControllerSpec{Namespaces: []string{ns.Name}, CommonSpec: v1alpha1.CommonSpec{
			For: v1alpha1.KindOf("configmaps"), Grant: &v1alpha1.Grant{Manifest: true},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Name(), "runs")

	seen := make(chan string, 1)
	native, err := rt.Add(ctx, wasmctl.Native{
		Name: "greeter", For: abi.Watch{Version: "v1", Kind: "ConfigMap"},
		Reconcile: func(_ context.Context, r *wasmctl.Request) (wasmctl.Action, error) {
			var cm corev1.ConfigMap
			if err := r.Decode(&cm); err != nil {
				return wasmctl.Action{}, err
			}
			seen <- cm.Data["text"]
			return wasmctl.Action{}, nil
		},
	}, wasmctl.ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{Namespaces: []string{ns.Name}, CommonSpec: v1alpha1.CommonSpec{
		Selector: &v1alpha1.Selector{MatchLabels: map[string]string{"greet": "true"}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	hello := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Labels: map[string]string{"greet": "true"}}, Data: map[string]string{"text": "hello"},
	}
	if _, err := client.CoreV1().ConfigMaps(ns.Name).Create(ctx, hello, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(native.Name(), "saw", <-seen)

	revision, err := c.Swap(ctx, wasmctl.File("testdata/wasm/worse.wasm"), wasmctl.SwapOptions{Canary: &v1alpha1.Canary{Percent: 10}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("revision", revision, "runs 10% of the objects")
	if revision, err = c.Promote(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("revision", revision, "is live")

	if err := c.Stop(ctx); err != nil { // drains
		log.Fatal(err)
	}
	cancel()
	fmt.Println("stopped:", <-ended)
	// Output:
	// empty runs
	// greeter saw hello
	// revision 2 runs 10% of the objects
	// revision 2 is live
	// stopped: <nil>
}
