// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Formats of a response. Those for metadata fall back to plain JSON, for API servers that do not support them; the superfluous fields are
// then discarded.
const (
	acceptObjects      = "application/json"
	acceptProtobuf     = "application/vnd.kubernetes.protobuf"
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// Client sends the lists and watches of a Set. It combines client-go's REST client, with its connections, credentials and retries, with its
// own decoder, which turns responses into packed objects without intermediate maps. It has no rate limit: each watch backs off by itself
// (rule 13). It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
	cfg  *rest.Config

	minor atomic.Int64 // of the API server's version 1.x; 0 if unknown
}

// NewClient returns a client for the API server of cfg, which the caller may change afterwards. It sends nothing yet.
func NewClient(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	cfg.DisableCompression = true // it costs both sides more than it saves on a cluster's network
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("watch client: %w", err)
	}
	connections, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("watch client: %w", err)
	}
	return &Client{base: base, http: connections, cfg: cfg}, nil
}

// listsFrom is the first minor version in which an API server answers a list from its cache, consistently, and without building the whole
// response in memory (KEP-2340 and KEP-5116). A list then takes half as long as the same objects in a watch.
const (
	listsFrom      = 34
	versionTimeout = 5 * time.Second
)

// requests makes the requests of one source.
type requests struct {
	source  Source
	client  *rest.RESTClient
	cfg     *rest.Config
	decoder *decoder
	minor   *atomic.Int64 // see Client
}

func (c *Client) requests(source Source, d *decoder) *requests {
	client, err := rest.NewRESTClient(c.base, "", rest.ClientContentConfig{
		AcceptContentTypes: acceptObjects, ContentType: acceptObjects, Negotiator: negotiator{d},
	}, nil, c.http)
	if err != nil {
		panic(fmt.Sprintf("BUG: client: %v", err))
	}
	return &requests{source: source, client: client, cfg: c.cfg, decoder: d, minor: &c.minor}
}

var parameters = func() k8sruntime.ParameterCodec {
	scheme := k8sruntime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return k8sruntime.NewParameterCodec(scheme)
}()

// get prepares a request; metadata is the format in which metadata is requested.
func (r *requests) get(opts *metav1.ListOptions, metadata string) *rest.Request {
	gvr := r.source.Resource
	root := []string{"apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		root = []string{"api", gvr.Version}
	}
	opts.LabelSelector, opts.FieldSelector, opts.ShardSelector = r.source.LabelSelector, r.source.FieldSelector, r.source.Shard.Selector()
	req := r.client.Get().AbsPath(root...).Namespace(r.source.Namespace).Resource(gvr.Resource).
		SpecificallyVersionedParams(opts, parameters, schema.GroupVersion{Version: "v1"})
	switch {
	case r.source.Metadata:
		req.SetHeader("Accept", metadata)
	case r.decoder.takesProtobuf():
		req.SetHeader("Accept", acceptProtobuf+","+acceptObjects)
	}
	switch {
	case r.cfg.WarningHandlerWithContext != nil:
		req.WarningHandlerWithContext(r.cfg.WarningHandlerWithContext)
	case r.cfg.WarningHandler != nil:
		req.WarningHandler(r.cfg.WarningHandler)
	}
	return req
}

// listsFirst reports whether to list before watching. Otherwise, the list is streamed by the watch (KEP-3157) or, if the API server does
// not support that, comes from its cache.
func (r *requests) listsFirst(ctx context.Context) bool {
	if r.minor.Load() == 0 {
		bounded, cancel := context.WithTimeout(ctx, versionTimeout)
		defer cancel()
		body, err := r.client.Get().AbsPath("/version").Do(bounded).Raw()
		var info version.Info
		if err == nil && json.Unmarshal(body, &info) == nil && info.Major == "1" {
			minor, _ := strconv.ParseInt(strings.TrimRight(info.Minor, "+"), 10, 64) // on an error, the version remains unknown
			r.minor.Store(minor)
		}
	}
	return r.minor.Load() >= listsFrom
}

// list requests one page, or the whole list, and packs its objects as they arrive. If the objects are not stored, listing is nil.
func (r *requests) list(ctx context.Context, opts metav1.ListOptions, listing *listing) (*metainternalversion.List, error) {
	body, err := r.get(&opts, acceptMetadataList).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // all that is needed has been read
	list, err := readList(body, r.decoder, listing)
	if errors.Is(err, reflector.ErrNotRead) {
		return r.list(ctx, opts, listing) // as JSON this time
	}
	return list, err
}

// watch requests a watch. Its events contain the results of the decoder.
func (r *requests) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return r.get(&opts, acceptMetadata).Watch(ctx)
}
