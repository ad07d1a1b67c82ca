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

// Forms of an answer. Those of metadata are followed by plain JSON, for API
// servers that do not know them: what came too much is then dropped.
const (
	acceptObjects      = "application/json"
	acceptProtobuf     = "application/vnd.kubernetes.protobuf"
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// Client sends the lists and watches of a Set. It is client-go's REST client,
// with its connections, credentials and retries, and a decoder of its own that
// turns what the API server sends into packed objects without a detour by maps.
// It has no rate limit: each watch backs off by itself (rule 13). It is safe for
// concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
	cfg  *rest.Config

	minor atomic.Int64 // of the API server's version 1.x, once it is known
}

// NewClient returns a client for the API server of cfg, which may be changed
// afterwards. Nothing is sent yet. The error says why cfg makes no client.
func NewClient(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	cfg.DisableCompression = true // it costs both sides more than a cluster's network does
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

// listsFrom is the minor version from which on an API server answers a list from its
// cache, consistently, and without building it in memory as a whole (KEP-2340 and
// KEP-5116). Then it takes half as long as the same objects in a watch.
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

// get starts a request; metadata is the form in which metadata is asked for.
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

// listsFirst reports whether to list and then to watch; else the list comes in the
// watch (KEP-3157) or, from an API server that cannot do that, as its cache has it.
func (r *requests) listsFirst(ctx context.Context) bool {
	if r.minor.Load() == 0 {
		bounded, cancel := context.WithTimeout(ctx, versionTimeout)
		defer cancel()
		body, err := r.client.Get().AbsPath("/version").Do(bounded).Raw()
		var info version.Info
		if err == nil && json.Unmarshal(body, &info) == nil && info.Major == "1" {
			minor, _ := strconv.ParseInt(strings.TrimRight(info.Minor, "+"), 10, 64) // else it is not known
			r.minor.Store(minor)
		}
	}
	return r.minor.Load() >= listsFrom
}

// list requests one page, or the whole, and packs its objects as they arrive.
func (r *requests) list(ctx context.Context, opts metav1.ListOptions) (*metainternalversion.List, error) {
	body, err := r.get(&opts, acceptMetadataList).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // all that is needed has been read
	list, err := readList(body, r.decoder)
	if errors.Is(err, reflector.ErrNotRead) {
		return r.list(ctx, opts) // as JSON now
	}
	return list, err
}

// watch requests a watch. Its events carry what the decoder makes of objects.
func (r *requests) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return r.get(&opts, acceptMetadata).Watch(ctx)
}
