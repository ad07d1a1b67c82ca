// SPDX-License-Identifier: Apache-2.0

package restapi

import "testing"

// TestParse_NamesWhatThePathIsAbout covers the core group and others, with and
// without a namespace, and Namespaces themselves.
func TestParse_NamesWhatThePathIsAbout(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                  "/v1 pods|||",
		"/api/v1/namespaces/a/pods/b/log":               "/v1 pods|a|b|log",
		"/api/v1/namespaces":                            "/v1 namespaces|||",
		"/api/v1/namespaces/a":                          "/v1 namespaces||a|",
		"/api/v1/namespaces/a/status":                   "/v1 namespaces||a|status",
		"/apis/apps/v1/deployments":                     "apps/v1 deployments|||",
		"/apis/apps/v1/namespaces/a/deployments/b/":     "apps/v1 deployments|a|b|",
		"/apis/x.example.com/v1beta1/things/c/scale":    "x.example.com/v1beta1 things||c|scale",
		"/apis/apps/v1/namespaces/a/deployments/b/s/no": "",
		"/apis/apps/v1":                                 "", "/api": "", "/version": "", "/": "",
	} {
		got := ""
		if t, ok := parse(path); ok {
			got = t.Group + "/" + t.Version + " " + t.Resource + "|" + t.namespace + "|" + t.name + "|" + t.subresource
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
