// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/restapi"
)

// TestRESTAPI_ARequestIsACallOfTheHost sends the requests of clients of
// client-go in turn. Answers and errors are those of an API server.
func TestRESTAPI_ARequestIsACallOfTheHost(t *testing.T) {
	const all, one = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/secrets/s"
	const merge = "application/merge-patch+json"
	_, result := in(t, func(ctx context.Context, m ctrl.Manager, c client.Client) {
		server := restapi.Server{Client: c, Mapper: m.GetRESTMapper()}
		for _, step := range []struct {
			method, path, media, body string
			code                      int
			want                      string // in the answer
		}{
			{"GET", one, "", "", 404, `"reason":"NotFound"`},
			{"POST", all, "", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"a":"b"}},"type":"x"}`, 200, `"uid"`},
			{"POST", all, "", `{"metadata":{"name":"s"}}`, 409, `"reason":"AlreadyExists"`},
			{"GET", one, "", "", 200, `"type":"x"`},
			{"GET", all + "?labelSelector=a%3Db&limit=5", "", "", 200, `"kind":"SecretList"`},
			{"GET", all + "?labelSelector=a%3Dc", "", "", 200, `"items":[]`},
			{"PATCH", one + "?fieldManager=me", merge, `{"metadata":{"labels":{"a":"c"}}}`, 200, `"a":"c"`},
			{"PUT", one, "", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","resourceVersion":"1"}}`, 409, `"reason":"Conflict"`},
			{"PUT", one, "", `no`, 400, `"reason":"BadRequest"`},
			{"GET", all + "?watch=true", "", "", 405, "Owns or Watches"},
			{"GET", "/openapi/v3", "", "", 404, "cannot ask"},
			{"GET", "/api", "", "", 200, `"versions":["v1"]`},
			{"GET", "/api/v1", "", "", 200, `"name":"nodes","singularName":"node","namespaced":false`},
			{"GET", "/apis", "", "", 200, `"preferredVersion":{"groupVersion":"apps/v1"`},
			{"GET", "/apis/apps", "", "", 200, `"versions":[{"groupVersion":"apps/v1","version":"v1"}]`},
			{"GET", "/apis/apps/v1", "", "", 200, `"name":"deployments"`},
			{"GET", "/apis/apps/v1beta1", "", "", 404, `"reason":"NotFound"`},
			{"GET", "/apis/example.com", "", "", 404, `"reason":"NotFound"`},
			{"GET", "/api/v1/namespaces/default", "", "", 403, `"reason":"Forbidden"`},
			{"DELETE", one, "", `{"propagationPolicy":"Background"}`, 200, `"name":"s"`},
			{"GET", one, "", "", 404, `"reason":"NotFound"`},
			{"DELETE", all, "", "", 200, `"Success"`},
		} {
			req, err := http.NewRequestWithContext(ctx, step.method, "http://host"+step.path, strings.NewReader(step.body))
			must(t, err)
			req.Header.Set("Content-Type", step.media)
			resp, err := server.Serve(req)
			if err != nil {
				t.Fatalf("%s %s: %v", step.method, step.path, err)
			}
			text, err := io.ReadAll(resp.Body)
			must(t, err)
			if resp.StatusCode != step.code || !strings.Contains(string(text), step.want) || !json.Valid(text) {
				t.Errorf("%s %s: %d %s, want %d and %s", step.method, step.path, resp.StatusCode, text, step.code, step.want)
			}
		}
		req, err := http.NewRequestWithContext(ctx, "GET", "http://host/apis/example.com/v1/things/a", nil)
		must(t, err)
		if _, err := server.Serve(req); err == nil || !strings.Contains(err.Error(), "scheme") {
			t.Errorf("a resource that no kind is known of: %v", err)
		}
	})
	fine(t, result)
}

// TestRESTClient_OfTheManagersConnectionCallsTheHost covers a client for a
// kind, and one with the manager's HTTP client.
func TestRESTClient_OfTheManagersConnectionCallsTheHost(t *testing.T) {
	_, result := in(t, func(ctx context.Context, m ctrl.Manager, _ client.Client) {
		of, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Secret"), false, false, m.GetConfig(), serializer.NewCodecFactory(m.GetScheme()), m.GetHTTPClient())
		must(t, err)
		var got corev1.Secret
		must(t, of.Get().Namespace("default").Resource("secrets").Name("s").Do(ctx).Into(&got))
		kube, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
		must(t, err)
		same, err := kube.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
		must(t, err)
		if got.Type != "x" || same.Type != "x" {
			t.Errorf("%+v, %+v", got, same)
		}
	}, secret("s", "x", nil))
	fine(t, result)
}

// TestRESTClient_TheVersionIsThatOfTheLibraries includes requests before there
// is a manager.
func TestRESTClient_TheVersionIsThatOfTheLibraries(t *testing.T) {
	v, err := discovery.NewDiscoveryClientForConfigOrDie(ctrl.GetConfigOrDie()).ServerVersion()
	if err != nil || v.Major != "1" || !strings.HasPrefix(v.GitVersion, "v1."+v.Minor+".") || len(v.Minor) < 2 {
		t.Errorf("%+v, %v", v, err)
	}
}
