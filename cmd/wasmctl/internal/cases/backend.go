// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// fault implements memapi.Config.Intercept.
func (w *world) fault(r *memapi.Request) memapi.Fault {
	if w.intercept != nil {
		return w.intercept(r)
	}
	var fault memapi.Fault
	for i := range w.c.Answers {
		a := &w.c.Answers[i]
		if !a.matches(r) {
			continue
		}
		if w.asked[i]++; fault.Err == nil && (a.Nth == 0 || a.Nth == w.asked[i]) {
			fault = memapi.Fault{Err: a.err(r), After: a.Lost}
		}
	}
	return fault
}

// Call carries out an operation, and records its events.
func (w *world) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	res := w.api.Call(ctx, op, req)
	if op != abi.OpEventRecord || res.Status != abi.StatusOK {
		return res
	}
	if e, _, err := abi.DecodeRequest[abi.EventRequest](req); err == nil {
		w.events = append(w.events, fmt.Sprintf("%s %s %s", cmp.Or(e.Type, "Normal"), e.Reason, e.Note))
	}
	return res
}

// object returns the reconciled object in its current state in the cluster.
func (w *world) object(key abi.Key) map[string]any {
	for _, o := range w.server.Objects() {
		u := unstructured.Unstructured{Object: o}
		if u.GetKind() == w.kind.Kind && u.GroupVersionKind().Group == w.kind.Group && u.GetNamespace() == key.Namespace && u.GetName() == key.Name {
			return o
		}
	}
	return nil
}

// Declare implements applier.Cluster.
func (w *world) Declare(ctx context.Context, of applier.Owner, d *abi.Declared) error {
	return w.api.Declare(ctx, kubeapi.Owner{Kind: w.kind, Object: of.Object}, d)
}

// AddFinalizer implements applier.Cluster.
func (w *world) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	return w.api.AddFinalizer(ctx, w.kind, object, finalizer)
}

// RemoveFinalizer implements applier.Cluster.
func (w *world) RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error {
	return w.api.RemoveFinalizer(ctx, w.kind, object, finalizer)
}

// Inspect implements applier.Cluster.
func (w *world) Inspect(_ context.Context, write abi.Write) ([]byte, error) {
	return json.Marshal(w.object(write.Key))
}
