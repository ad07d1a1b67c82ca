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
