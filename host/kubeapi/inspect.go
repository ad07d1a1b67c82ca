// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Inspect reads an object from the API server and returns its JSON, including
// metadata.managedFields. It is for the host's own diagnosis: the policy does not apply, and no
// guest sees the answer. An error is a *WriteError.
func (a *API) Inspect(ctx context.Context, gvr schema.GroupVersionResource, key abi.Key) ([]byte, error) {
	r := &request{op: abi.OpAPIGet, key: key, kind: kinds.Kind{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Namespaced: key.Namespace != ""}}
	js, err := a.exchange(ctx, r)
	if err != nil {
		return nil, a.writeError(ctx, StepInspect, r, err)
	}
	return js, nil
}
