// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// TestAccept_AnotherKindIsRefusedAtOnce: the kind of the new manifest is compared before a
// request to the API server, which may never have it.
func TestAccept_AnotherKindIsRefusedAtOnce(t *testing.T) {
	r := &Rollout{cfg: Config{Controller: "module", Kind: plan.Watched{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Greeting"}}, Planner: &plan.Planner{}}}
	_, err := r.accept(t.Context(), "", &abi.Manifest{For: &abi.Watch{Group: "never.example.dev", Version: "v1", Kind: "Salute"}})
	if err == nil || !strings.Contains(err.Error(), "restart wasmctl") || !strings.Contains(err.Error(), "Salute, was") || !strings.Contains(err.Error(), "Greeting") {
		t.Errorf("%v", err)
	}
}

// TestAccept_TheModuleDoesNotRenameTheController: a controller that has its name from a manifest does not accept a module
// with which it would have another name after a restart; one with a name of its own does.
func TestAccept_TheModuleDoesNotRenameTheController(t *testing.T) {
	greetings := plan.Watched{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Greeting"}}
	salute := &abi.Watch{Group: "never.example.dev", Version: "v1", Kind: "Salute"} // it is refused next
	for _, c := range []struct {
		of      host.Config
		name    string // of the new manifest
		refused bool
	}{
		{host.Config{Fallback: "file"}, "greeter", false},
		{host.Config{Fallback: "file"}, "other", true},
		{host.Config{Fallback: "file"}, "", true},
		{host.Config{Fallback: "greeter"}, "", false},
		{host.Config{Name: "greeter"}, "other", false},
	} {
		r := &Rollout{cfg: Config{Controller: "greeter", Host: c.of, Kind: greetings, Planner: &plan.Planner{}}}
		_, err := r.accept(t.Context(), "", &abi.Manifest{Name: c.name, For: salute})
		if refused := strings.Contains(err.Error(), "--name greeter"); refused != c.refused || !refused && !strings.Contains(err.Error(), "Salute") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
