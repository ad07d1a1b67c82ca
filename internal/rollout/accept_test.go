// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// TestAccept_AnotherKindIsRefusedAtOnce: the kind of the new manifest is compared before a
// request to the API server, which may never have it.
func TestAccept_AnotherKindIsRefusedAtOnce(t *testing.T) {
	r := &Rollout{cfg: Config{Kind: plan.Watched{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Greeting"}}, Planner: &plan.Planner{}}}
	_, err := r.accept(t.Context(), "", &abi.Manifest{For: &abi.Watch{Group: "never.example.dev", Version: "v1", Kind: "Salute"}})
	if err == nil || !strings.Contains(err.Error(), "restart wasmctl") || !strings.Contains(err.Error(), "Salute, was") || !strings.Contains(err.Error(), "Greeting") {
		t.Errorf("%v", err)
	}
}
