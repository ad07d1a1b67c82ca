package client

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest/backed"

	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// early answers what main calls before it starts the manager: as a cluster without
// objects. Main decides the manifest at build, when there is no other, and so that
// each instance starts alike.
var early = backed.Client(func(op string, msg map[string]any) (any, *wasmctl.Error) {
	named, name := msg, msg["name"]
	if object, ok := msg["object"].(map[string]any); ok {
		named = object
		meta, _ := object["metadata"].(map[string]any)
		name = meta["name"]
	}
	kind := fmt.Sprint(named["kind"])
	switch op {
	case "api_list":
		logf.Log.Info("main lists objects before the manager starts: there are none", "kind", kind)
		return map[string]any{"apiVersion": named["apiVersion"], "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "0"}, "items": []any{}}, nil
	case "api_create", "api_apply":
		if !program.Without(program.Writes) {
			return nil, &wasmctl.Error{Status: wasmctl.StatusUnsupported, Message: program.NoWrites}
		}
		logf.Log.Info("main writes an object before the manager starts: this has no effect", "kind", kind, "name", name)
		return named, nil
	}
	logf.Log.Info("main asks for an object before the manager starts: there is none", "kind", kind, "name", name)
	return nil, &wasmctl.Error{
		Status: http.StatusNotFound, Reason: string(metav1.StatusReasonNotFound),
		Message: fmt.Sprintf("%s %q not found: before the manager starts, main sees a cluster without objects", kind, name),
	}
})
