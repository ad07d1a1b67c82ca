//go:build wasmctl_rest || !wasip1

package manager

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/internal/restapi"
)

func init() {
	serveREST = func(c client.Client, m meta.RESTMapper) { rest.Serve = restapi.Server{Client: c, Mapper: m}.Serve }
}
