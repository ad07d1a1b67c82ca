// SPDX-License-Identifier: Apache-2.0

package kubeapi_test

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

func ExampleNewModulePolicy() {
	kind := kinds.Kind{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", Resource: "configmapgenerators", Namespaced: true}
	policy := kubeapi.NewModulePolicy(kind, []string{"default"}, []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get", "patch"}},
	})
	for _, line := range policy.Describe() {
		fmt.Println("may:", line)
	}
	fmt.Println(policy.Allows(kubeapi.Attributes{Verb: kubeapi.VerbDelete, Resource: "configmaps", Namespace: "default", Name: "x"}))
	// Output:
	// may: get, list, watch configmapgenerators.examples.wasmctl.dev in namespace default
	// may: get, update, patch configmapgenerators.examples.wasmctl.dev/status (fields status) in namespace default
	// may: get, patch configmaps in all namespaces
	// false
}

func ExampleRBACRules() {
	fmt.Print(kubeapi.RBACRules([]kubeapi.MissingRight{{Group: "apps", Resource: "deployments", Verbs: []string{"list", "watch"}}}))
	// Output:
	// # in a ClusterRole
	// - apiGroups: ["apps"]
	//   resources: ["deployments"]
	//   verbs: ["list", "watch"]
}
