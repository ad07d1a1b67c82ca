// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest || !wasip1

package manager

import (
	"cmp"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/defaultscheme"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/internal/restapi"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

func init() {
	rest.Serve = serveEarly
	serveREST = func(c client.Client, m meta.RESTMapper) { rest.Serve = restapi.Server{Client: c, Mapper: m}.Serve }
}

// serveEarly answers requests before there is a manager, and so a scheme of the
// program. It uses the kinds of client-go's scheme.
func serveEarly(r *http.Request) (*http.Response, error) {
	logf.Log.Info("main asks the API server before it has made a manager: the only kinds are those of Kubernetes", "path", r.URL.Path)
	scheme := cmp.Or(defaultscheme.Get(), runtime.NewScheme())
	c, err := client.New(rest.New(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return restapi.Server{Client: c, Mapper: kinds.NewMapper(scheme)}.Serve(r)
}
