// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest/backed"

	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// early answers calls that main makes before it starts the manager, as a
// cluster that has only the objects given to the build. main determines the
// manifest during the build, when there is no other cluster, and each instance
// must start with the same answers.
var early = backed.Client(func(op string, msg map[string]any) (any, *wasmctl.Error) {
	named, name := msg, msg["name"]
	if object, ok := msg["object"].(map[string]any); ok {
		named = object
		meta, _ := object["metadata"].(map[string]any)
		name = meta["name"]
	}
	kind := fmt.Sprint(named["kind"])
	found := objects(named, name, op == "api_list")
	switch {
	case op == "api_list":
		logf.Log.Info("main lists objects before the manager starts: it gets only those of wasmctl build --objects", "kind", kind, "objects", len(found))
		return map[string]any{"apiVersion": named["apiVersion"], "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "0"}, "items": found}, nil
	case op == "api_get" && len(found) > 0:
		return found[0], nil
	}
	switch op {
	case "api_create", "api_apply":
		if !program.Without(program.Writes) {
			return nil, &wasmctl.Error{Status: wasmctl.StatusUnsupported, Message: program.NoWrites}
		}
		logf.Log.Info("main writes an object before the manager starts: this has no effect", "kind", kind, "name", name)
		return named, nil
	}
	logf.Log.Info("main reads an object before the manager starts: it does not exist; if main needs it, pass it with wasmctl build --objects", "kind", kind, "name", name)
	return nil, &wasmctl.Error{
		Status: http.StatusNotFound, Reason: string(metav1.StatusReasonNotFound),
		Message: fmt.Sprintf("%s %q not found: before the manager starts, main sees only the objects of wasmctl build --objects", kind, name),
	}
})

// objects returns the objects given to the build that match a request.
func objects(named map[string]any, name any, all bool) []any {
	found := []any{}
	text, _ := named["labelSelector"].(string)
	selector, err := labels.Parse(text)
	if err != nil {
		selector = labels.Nothing()
	}
	asked, _ := named["namespace"].(string)
	for _, o := range program.Objects() {
		has := &unstructured.Unstructured{Object: o}
		same := has.GetAPIVersion() == named["apiVersion"] && has.GetKind() == named["kind"] && (asked == "" || has.GetNamespace() == asked)
		if same && (all && selector.Matches(labels.Set(has.GetLabels())) || !all && has.GetName() == name) {
			found = append(found, o)
		}
	}
	return found
}
