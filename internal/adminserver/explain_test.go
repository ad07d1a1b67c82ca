// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"testing"

	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

func TestIsNamed_TakesWhatKubectlTakes(t *testing.T) {
	k := kinds.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Singular: "deployment", ShortNames: []string{"deploy"}}
	for name, want := range map[string]bool{
		"deployments": true, "Deployment": true, "deploy": true, "deployment.apps": true, "deployments.v1.apps": true, "apps/v1/Deployment": true,
		"deployments.extensions": false, "deployments.v2.apps": false, "apps/v2/Deployment": false, "v1/Deployment": false, "pods": false, "": false,
	} {
		if got := isNamed(k, name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if core := (kinds.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"}); !isNamed(core, "v1/ConfigMap") || !isNamed(core, "configmaps.v1") || isNamed(core, "configmaps.apps") {
		t.Error("a kind of the core group")
	}
}
