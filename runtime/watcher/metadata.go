package watcher

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Each form is followed by plain JSON, for API servers that do not know it: the
// store then drops what came too much.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// NewMetadataClient returns a client whose lists and watches ask the API server
// for metadata only (PartialObjectMetadata), for Config.Metadata. It must not
// be used for anything else. The error says why cfg makes no client.
func NewMetadataClient(cfg *rest.Config) (dynamic.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataTransport{next} })
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("metadata client: %w", err)
	}
	return client, nil
}

// metadataTransport says in each request which form the answer should have;
// the dynamic client cannot.
type metadataTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t metadataTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	accept := acceptMetadataList
	if watch := r.URL.Query().Get("watch"); strings.EqualFold(watch, "true") || watch == "1" {
		accept = acceptMetadata
	}
	r = r.Clone(r.Context()) // a RoundTripper must not change its request
	r.Header.Set("Accept", accept)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t metadataTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
