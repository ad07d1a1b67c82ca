// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// The API server reports an object that left a selector as deleted. An object that exists was not deleted, except for its
// predecessors of the same name.
func TestDeselected_AnObjectThatExistsWasNotDeleted(t *testing.T) {
	created := time.Unix(1000, 0)
	gone := func(at time.Time) history.Run {
		return history.Run{
			Started: at, Ending: history.Ending{Result: history.ResultSkipped, Error: applier.ErrObjectNotFound.Error()},
			Reasons: queue.Reasons{First: abi.Reason{Type: abi.ReasonResync}, More: []abi.Reason{{Type: abi.ReasonObjectDeleted}}},
		}
	}
	runs := []history.Run{gone(created.Add(time.Second)), {Started: created.Add(time.Second), Ending: history.Ending{Result: history.ResultSucceeded}}, gone(created.Add(-time.Second))}
	var got []string
	for _, r := range append(deselected(runs, created), runs...) {
		got = append(got, fmt.Sprint(r.Reasons.Texts(), " ", r.Error))
	}
	want := []string{
		"[Resync ObjectDeselected] the object is no longer selected", "[] ", "[Resync ObjectDeleted] object not found",
		"[Resync ObjectDeleted] object not found", "[] ", "[Resync ObjectDeleted] object not found",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

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
