// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/operation"
)

// discovery is all that the API server of clusterAPI answers.
var discovery = map[string]string{
	"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
		`{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["get","list","create","update","patch","delete"]},` +
		`{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get","list","create","update","patch","delete"]}]}`,
}

// clusterAPI serves operations like wasmctl, for a module that may read ConfigMaps. Any request to
// the API server except discovery fails the test.
func clusterAPI(tb testing.TB) operation.API {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := discovery[r.URL.Path]
		if !ok {
			tb.Errorf("%s %s reached the API server", r.Method, r.URL)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	tb.Cleanup(server.Close)
	client, err := kubeapi.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	resolver := kinds.NewResolver(client, log)
	kind, err := resolver.Resolve(tb.Context(), "configmaps")
	if err != nil {
		tb.Fatal(err)
	}
	api, err := kubeapi.New(kubeapi.Config{
		Client: client, Resolver: resolver, Controller: "hostile", Logger: log,
		Policy: kubeapi.NewModulePolicy(kind, nil, []abi.Capability{{Resource: "configmaps", Verbs: []string{"get"}}}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// notForged checks that no line of a guest looks like one of the host or of another controller.
func notForged(t *testing.T, w *world) {
	t.Helper()
	text := string(w.log.text)
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`(^|\s)(controller|time)=(other|x)\b`).MatchString(line) || strings.HasPrefix(line, "msg=") {
			t.Errorf("forged: %s", line)
		}
	}
	if strings.ContainsAny(text, "\x1b\x00") {
		t.Errorf("control characters in the log: %q", text)
	}
	if !strings.Contains(text, "guest_controller=other") {
		t.Errorf("the attribute of the guest is not there:\n%s", text)
	}
}
