// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// world is an empty cluster in which every write succeeds. It implements operation.API.
type world struct {
	mu sync.Mutex
	// refuse, if not nil, is the answer to everything; guarded by mu.
	refuse *abi.Response
	// asked are the distinct operations since the last take; guarded by mu.
	asked []string
	// needs are the distinct rights that were used; guarded by mu.
	needs []need
}

// use records rights.
func (w *world) use(needs ...need) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range needs {
		if !slices.Contains(w.needs, n) {
			w.needs = append(w.needs, n)
		}
	}
}

// needed returns the rights that were used.
func (w *world) needed() []need {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.needs
}

// set makes every operation return r. Nil ends that.
func (w *world) set(r *abi.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = r
}

// take returns the names of the operations since the last call.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// Call implements operation.API.
func (w *world) Call(_ context.Context, op abi.Op, req []byte) abi.Response {
	w.mu.Lock()
	if !slices.Contains(w.asked, string(op)) {
		w.asked = append(w.asked, string(op))
	}
	refuse := w.refuse
	w.mu.Unlock()
	if refuse != nil {
		return *refuse
	}
	if op == abi.OpEventRecord {
		w.use(need{verb: "create", group: "events.k8s.io", kind: "Event"}, need{verb: "patch", group: "events.k8s.io", kind: "Event"})
		return abi.Response{Body: encode(nil)}
	}
	r, _, err := abi.DecodeRequest[abi.APIRequest](req)
	if err != nil {
		return abi.Refuse(&abi.StatusBody{Code: abi.StatusBadRequest, Reason: "BadRequest", Message: string(op) + ": " + err.Error()})
	}
	w.use(needOf(op, &r))
	return answer(op, &r)
}

func answer(op abi.Op, r *abi.APIRequest) abi.Response {
	switch op {
	case abi.OpAPIList, abi.OpCacheList:
		return abi.Response{Body: encode(object{
			"apiVersion": r.APIVersion, "kind": r.Kind + "List", "metadata": object{"resourceVersion": "1"}, "items": []any{},
		})}
	case abi.OpAPICreate, abi.OpAPIUpdate, abi.OpAPIApply:
		stored, err := abi.DecodeObject(r.Object)
		if err != nil {
			return abi.Refuse(&abi.StatusBody{Code: abi.StatusBadRequest, Reason: "BadRequest", Message: string(op) + ": object: " + err.Error()})
		}
		return abi.Response{Body: encode(asStored(stored))}
	case abi.OpAPIPatch:
		return abi.Response{Body: encode(asStored(object{
			"apiVersion": r.APIVersion, "kind": r.Kind, "metadata": object{"name": r.Name, "namespace": r.Namespace},
		}))}
	case abi.OpAPIDelete:
		return abi.Response{Body: encode(object{"apiVersion": "v1", "kind": "Status", "metadata": object{}, "status": "Success"})}
	default:
		return status(404, "NotFound", fmt.Sprintf("%s %q not found", r.Kind, r.Name))
	}
}

// asStored adds the fields that the API server sets to an object.
func asStored(o object) object {
	meta, ok := o["metadata"].(object)
	if !ok {
		meta = object{}
		o["metadata"] = meta
	}
	meta["uid"], meta["resourceVersion"] = "0d9ab1c5-3d3c-4b5b-8d6c-1d1c8b6f2f10", "2"
	return o
}

// status is an answer of the API server.
func status(code int, reason, message string) abi.Response {
	return abi.Response{Status: abi.Status(code), Body: encode(object{ //nolint:gosec // an HTTP status code
		"apiVersion": "v1", "kind": "Status", "metadata": object{}, "status": "Failure", "reason": reason, "message": message, "code": code,
	})}
}

// object is a map of a message.
type object = map[string]any

// encode encodes a value of this package, or one that was decoded from msgpack.
func encode(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic("BUG: validate: " + err.Error())
	}
	return b
}
