// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"fmt"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

func ExampleValue() {
	pod, err := wasmctl.NewObject(wasmctl.Map{
		"apiVersion": "v1", "kind": "Pod", "metadata": wasmctl.Map{"name": "web", "namespace": "shop"},
		"spec": wasmctl.Map{"containers": []any{wasmctl.Map{"name": "app", "image": "app:1"}, wasmctl.Map{"name": "proxy"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pod.Ref(), pod.Len("spec", "containers"), pod.Exists("status", "phase"))
	for i, c := range pod.Elements("spec", "containers") {
		fmt.Println(i, c.String("name"), c.String("image"))
	}
	// Output:
	// Pod[shop/web] 2 false
	// 0 app app:1
	// 1 proxy
}

func ExampleValue_Decode() {
	deployment, err := wasmctl.NewObject(wasmctl.Map{"spec": wasmctl.Map{"replicas": 3, "paused": true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var spec struct {
		Replicas int  `json:"replicas"`
		Paused   bool `json:"paused"`
	}
	fmt.Println(deployment.Decode(&spec, "spec"), spec.Replicas, spec.Paused)
	// Output: <nil> 3 true
}

func ExampleRequeue() {
	fmt.Println(wasmctl.Requeue(5 * time.Minute))
	fmt.Println(wasmctl.AwaitChange())
	// Output:
	// requeue after 5m0s
	// await change
}

func ExampleBuilder() {
	child := wasmctl.BuildObject(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}).
		Map("labels").Set("app", "web").End().
		End(). // of metadata
		Map("data").Set("text", "hi")
	obj, err := wasmctl.NewObject(child)
	fmt.Println(obj.Ref(), obj.Label("app"), obj.String("data", "text"), err)
	// Output: ConfigMap[shop/web] web hi <nil>
}

func ExampleConditions_Set() {
	var conditions wasmctl.Conditions // those of the object: obj.Conditions()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ready := wasmctl.Condition{Type: "Ready", Status: wasmctl.ConditionTrue, Reason: "Applied"}
	fmt.Println(conditions.Set(ready, now))
	fmt.Println(conditions.Set(ready, now.Add(time.Hour)), conditions[0].LastTransitionTime)
	// Output:
	// true
	// false 2026-01-01 12:00:00 +0000 UTC
}

func ExampleObject_Set() {
	obj, err := wasmctl.NewObject(wasmctl.Map{"spec": wasmctl.Map{"replicas": 1, "unknown": "kept"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(obj.Set(3, "spec", "replicas"), obj.Int("spec", "replicas"), obj.String("spec", "unknown"))
	// Output: <nil> 3 kept
}
