// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// write writes a status, and records an event about it, if it has changed and this replica is responsible
// for it.
func (s *Server) write(ctx context.Context, o *reconciler, st v1alpha1.Status) error {
	u := s.unit(o)
	u.setReady(&st)
	if s.cfg.ShareObjects && !s.rt.Owns(string(o.meta.UID)) {
		return nil
	}
	u.setCount(st.Objects)
	st.Record = u.record()
	before, err := json.Marshal(o.status)
	if err != nil {
		return err
	}
	after, err := json.Marshal(st)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	status := full(after)
	if s.cfg.ShareObjects {
		delete(status, "record") // other replicas write it, too
	}
	if err := s.patch(ctx, o, map[string]any{"metadata": map[string]any{"uid": o.meta.UID}, "status": status}); err != nil {
		return err
	}
	u.announce(o, &st)
	return nil
}

// full returns a status as a merge patch that removes absent fields.
func full(status []byte) map[string]any {
	out := map[string]any{"candidate": nil, "refused": nil, "live": nil, "objects": nil, "history": nil, "audit": nil, "lastHandledReconcileAt": nil, "record": nil, "for": nil, "finalizers": nil}
	if err := json.Unmarshal(status, &out); err != nil {
		panic("BUG: status: " + err.Error())
	}
	return out
}

// patch patches the status of an object. It ignores that the object was deleted or replaced.
func (s *Server) patch(ctx context.Context, o *reconciler, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = s.client.Resource(v1alpha1.GVR(o.kind)).Namespace(o.meta.Namespace).Patch(ctx, o.meta.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "wasmctl-serve"}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next event of this name brings the present object
	}
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}
