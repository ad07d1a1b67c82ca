// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wasmctl/wasmctl/abi"
)

// systemFields are the fields of metadata that only the API server changes.
var systemFields = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"}

// outcome returns the answer to a write of DryRunClient: body merged into the current object.
// Errors are those of the API server: not found, already exists, conflict, a patch that does not
// apply.
func (r *request) outcome(ctx context.Context, before *prior, body []byte) (map[string]any, error) {
	resource := r.kind.GVR().GroupResource()
	there := before.object != nil
	switch {
	case r.op == abi.OpAPICreate && there:
		return nil, apierrors.NewAlreadyExists(resource, r.key.Name)
	case r.op == abi.OpAPICreate:
		return r.made(body)
	case !there && before.known && (r.op != abi.OpAPIApply || r.Subresource != ""):
		return nil, apierrors.NewNotFound(resource, r.key.Name)
	}
	if err := r.meets(before); err != nil {
		return nil, err
	}
	switch {
	case r.op == abi.OpAPIDelete:
		return r.gone(before), nil
	case r.op == abi.OpAPIPatch:
		return r.patched(ctx, before, body)
	case !there:
		return r.made(body)
	}
	sent, err := r.parseObject(body)
	if err != nil {
		return nil, err
	}
	after := sent
	if r.op == abi.OpAPIApply {
		after, _ = overlay(before.object, sent).(map[string]any)
	}
	return r.keepOthers(before.object, after), nil
}

// meets checks the uid and resourceVersion of a write.
func (r *request) meets(before *prior) error {
	if before.object == nil {
		return nil
	}
	meta, _ := before.object["metadata"].(map[string]any)
	wants := preconditions(r.Preconditions)
	if wanted, _ := r.object["metadata"].(map[string]any); wanted != nil {
		for _, key := range []string{"uid", "resourceVersion"} {
			if value, _ := wanted[key].(string); value != "" {
				wants[key] = value
			}
		}
	}
	for key, value := range wants {
		if meta[key] != value {
			return apierrors.NewConflict(r.kind.GVR().GroupResource(), r.key.Name,
				fmt.Errorf("precondition failed: its %s is not %s", key, shorten(value)))
		}
	}
	return nil
}

// made returns an object as if it had just been created.
func (r *request) made(body []byte) (map[string]any, error) {
	object, err := r.parseObject(body)
	if err != nil || r.Subresource != "" {
		return object, err
	}
	meta, err := metadata(object, "object")
	if err != nil {
		return nil, err
	}
	if prefix, _ := meta["generateName"].(string); r.key.Name == "" && prefix != "" {
		meta["name"] = prefix + strings.ReplaceAll(string(uuid.NewUUID()), "-", "")[:5]
	}
	meta["uid"], meta["creationTimestamp"] = string(uuid.NewUUID()), time.Now().UTC().Format(time.RFC3339)
	object["metadata"] = meta
	if _, ok := r.kind.Subresources[subresourceStatus]; ok {
		delete(object, subresourceStatus)
	}
	return object, nil
}

// gone returns the answer to a deletion.
func (r *request) gone(before *prior) map[string]any {
	details := map[string]any{"name": r.key.Name, "kind": r.kind.Resource}
	if r.kind.Group != "" {
		details["group"] = r.kind.Group
	}
	if meta, _ := before.object["metadata"].(map[string]any); meta != nil {
		details["uid"] = meta["uid"]
	}
	return map[string]any{"kind": "Status", "apiVersion": "v1", "status": metav1.StatusSuccess, "details": details}
}

// patched returns the object after a patch.
func (r *request) patched(ctx context.Context, before *prior, body []byte) (map[string]any, error) {
	if before.object == nil {
		return map[string]any{}, nil // the module may not read it, so the result is unknown
	}
	err := errors.Join(r.ledger.takeJSON(before.json), r.ledger.takeJSON(body))
	if err != nil {
		return nil, err
	}
	var js []byte
	switch r.PatchType {
	case abi.PatchJSON:
		if js, err = applyOps(ctx, before.json, body); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	case abi.PatchMerge:
		js, err = jsonpatch.MergePatch(before.json, body)
	default:
		if err := r.checkStrategic(body); err != nil {
			return nil, err
		}
		example, unknown := scheme.Scheme.New(r.kind.GVK())
		if unknown != nil {
			return nil, r.refusedPatch(http.StatusUnsupportedMediaType, unknown)
		}
		js, err = strategicpatch.StrategicMergePatch(before.json, body, example)
	}
	var after map[string]any
	if err == nil {
		after, err = r.parseObject(js)
	}
	if err != nil {
		return nil, r.refusedPatch(http.StatusUnprocessableEntity, err)
	}
	return r.keepOthers(before.object, after), nil
}

func (r *request) refusedPatch(code int, err error) error {
	e := apierrors.NewGenericServerResponse(code, "patch", r.kind.GVR().GroupResource(), r.key.Name, err.Error(), 0, false)
	e.ErrStatus.Message = "the patch does not apply: " + shorten(err.Error())
	return e
}

// keepOthers restores the parts that a write to this subresource cannot change.
func (r *request) keepOthers(before, after map[string]any) map[string]any {
	was, _ := before["metadata"].(map[string]any)
	if r.Subresource == subresourceStatus {
		kept := maps.Clone(before)
		restore(kept, after, subresourceStatus)
		return kept
	}
	if _, ok := r.kind.Subresources[subresourceStatus]; ok && r.Subresource == "" {
		restore(after, before, subresourceStatus)
	}
	meta, _ := after["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		after["metadata"] = meta
	}
	for _, key := range systemFields {
		restore(meta, was, key)
	}
	return after
}

// restore sets to[key] to its value in from.
func restore(to, from map[string]any, key string) {
	if value, ok := from[key]; ok {
		to[key] = value
		return
	}
	delete(to, key)
}

// overlay merges an applied value into an existing one: maps are merged, and so are lists whose
// items have an identifying key. Everything else is replaced.
func overlay(under, over any) any {
	switch o := over.(type) {
	case map[string]any:
		u, ok := under.(map[string]any)
		if !ok {
			return over
		}
		merged := maps.Clone(u)
		if merged == nil {
			merged = map[string]any{}
		}
		for k, v := range o {
			merged[k] = overlay(u[k], v)
		}
		return merged
	case []any:
		if u, ok := under.([]any); ok {
			return overlayList(u, o)
		}
	}
	return over
}

// itemKeys are the keys that identify items of lists in most kinds.
var itemKeys = []string{"name", "type", "key"}

func overlayList(under, over []any) any {
	for _, key := range itemKeys {
		places, ok := byKey(under, key)
		if !ok {
			continue
		}
		if _, ok := byKey(over, key); !ok {
			continue
		}
		merged := append([]any{}, under...)
		for _, item := range over {
			m := item.(map[string]any)                //nolint:forcetypeassert // checked by byKey
			if i, ok := places[m[key].(string)]; ok { //nolint:forcetypeassert // checked by byKey
				merged[i] = overlay(merged[i], item)
			} else {
				merged = append(merged, item)
			}
		}
		return merged
	}
	return over
}

// byKey returns the position of each item in a list of maps, by the text at a key. ok is false if
// the text is missing or not unique.
func byKey(list []any, key string) (places map[string]int, ok bool) {
	places = make(map[string]int, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		value, isString := m[key].(string)
		if _, twice := places[value]; !isString || twice {
			return nil, false
		}
		places[value] = i
	}
	return places, true
}

// parseObject takes memory for an object, and decodes it.
func (r *request) parseObject(js []byte) (map[string]any, error) {
	if err := r.ledger.takeJSON(js); err != nil {
		return nil, err
	}
	return parseObject(js)
}

func parseObject(js []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(js, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, badf("object: must be a map")
	}
	return object, nil
}
