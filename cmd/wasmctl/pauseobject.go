package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// PauseObject implements admin.Service.
func (p *process) PauseObject(ctx context.Context, controller string, object abi.Key, paused bool) error {
	s, err := p.session(controller)
	if err != nil {
		return err
	}
	if err := s.checkKey(object); err != nil {
		return err
	}
	var value any // nil takes the annotation away
	if paused {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{applier.PausedAnnotation: value}}})
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = s.dynamic.Resource(s.kind.GVR())
	if s.kind.Namespaced {
		client = s.dynamic.Resource(s.kind.GVR()).Namespace(object.Namespace)
	}
	_, err = client.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "wasmctl"})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the process may not patch it: do it yourself, with kubectl annotate %s %s %s=true", err, s.kind.Name(), object.Name, applier.PausedAnnotation)
	case err != nil:
		return err
	}
	s.log.Info(map[bool]string{true: "object paused, by its annotation", false: "object resumed"}[paused], "object", object.String(), "controller", controller)
	return nil
}
