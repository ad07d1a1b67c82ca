// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// Trigger requests reconciles of the objects, or of all objects if the list is empty, and
// returns the number of requests. An object that is not in the cache is an error. The runs
// send all that they declare, even if the cache shows that nothing would change. With force,
// no run is skipped because of the memo.
func (c *Controller) Trigger(ctx context.Context, objects []abi.Key, force bool) (int, error) {
	for _, key := range objects {
		if err := c.CheckKey(key); err != nil {
			return 0, err
		}
		if c.Runtime.Stored(key) == nil {
			return 0, failure.Usage.Wrap(fmt.Errorf("%s[%s]: not found: the controller %s watches no such object", c.kind.Name(), key, c.name))
		}
	}
	all := len(objects) == 0
	c.api.Renew(objects)
	if force && c.memo != nil {
		c.memo.Renew(objects)
	}
	return c.Runtime.Trigger(ctx, trigger.Trigger{Refs: objects, All: all, Low: all}), nil
}

// Pause stops the controller from starting reconciles, or resumes them.
func (c *Controller) Pause(paused bool) {
	if paused {
		c.Runtime.Pause()
		c.log.Info("paused; no reconcile starts until wasmctl resume", "controller", c.name)
		return
	}
	c.Runtime.Resume()
	c.log.Info("resumed", "controller", c.name)
}

// CheckKey returns an error if no object of the kind can have this key.
func (c *Controller) CheckKey(key abi.Key) error {
	switch {
	case c.kind.Namespaced && key.Namespace == "":
		return failure.Usage.Wrap(fmt.Errorf("object %q: %s is namespaced: want namespace/name", key, c.kind.Name()))
	case !c.kind.Namespaced && key.Namespace != "":
		return failure.Usage.Wrap(fmt.Errorf("object %q: %s is cluster-scoped: want only a name", key, c.kind.Name()))
	}
	return nil
}

// PauseObject pauses an object by an annotation in the API server, or removes the
// annotation. Other replicas see it too.
func (c *Controller) PauseObject(ctx context.Context, object abi.Key, paused bool) error {
	if err := c.CheckKey(object); err != nil {
		return err
	}
	var value any // nil removes the annotation
	if paused {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{applier.PausedAnnotation: value}}})
	if err != nil {
		return err
	}
	_, err = c.Resource(c.kind.Kind, object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "wasmctl"})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the process has no right to patch the object: run %s", err, annotateByHand(c.kind.Name(), object, paused))
	case err != nil:
		return err
	}
	c.log.Info(map[bool]string{true: "object paused by annotation", false: "object resumed"}[paused], "object", object.String(), "controller", c.name)
	return nil
}

// annotateByHand returns the command with which a user pauses an object, or resumes it.
func annotateByHand(kind string, object abi.Key, paused bool) string {
	change := applier.PausedAnnotation + map[bool]string{true: "=true", false: "-"}[paused]
	if object.Namespace != "" {
		change += " -n " + object.Namespace
	}
	return fmt.Sprintf("kubectl annotate %s %s %s", kind, object.Name, change)
}
