// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest || !wasip1

package apiutil

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// RESTClientForGVK returns a client of client-go for a kind, in a program that
// uses client-go. It sends JSON by the transport of the config.
func RESTClientForGVK(gvk schema.GroupVersionKind, _, _ bool, config *rest.Config, codecs serializer.CodecFactory, _ *http.Client) (rest.Interface, error) {
	gv := gvk.GroupVersion()
	cfg := rest.CopyConfig(config)
	cfg.GroupVersion, cfg.NegotiatedSerializer = &gv, codecs.WithoutConversion()
	if cfg.APIPath = "/apis"; gvk.Group == "" {
		cfg.APIPath = "/api"
	}
	return rest.RESTClientFor(cfg)
}
