package manager

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/defaultscheme"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostcache"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostevents"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// connection is what a manager has of its cluster.
type connection struct {
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	cache  *hostcache.Cache
	client client.Client
	reader client.Reader
	limits cache.Options
	byKind map[schema.GroupVersionKind]cache.ByObject
	events bool // a recorder was asked for
}

func connect(cfg *rest.Config, o *Options) (*connection, error) {
	if o.Scheme == nil {
		o.Scheme = defaultscheme.Get()
	}
	switch {
	case cfg == nil:
		return nil, errors.New("the config is nil; use the one of ctrl.GetConfigOrDie")
	case o.Scheme == nil:
		return nil, defaultscheme.ErrNone
	case o.NewCache != nil:
		return nil, errors.New("Options.NewCache: a module has the cache of its host; use Options.Cache")
	}
	c := &connection{config: cfg, scheme: o.Scheme, limits: o.Cache, byKind: map[schema.GroupVersionKind]cache.ByObject{}}
	for obj, limits := range o.Cache.ByObject {
		gvk, err := apiutil.GVKForObject(obj, o.Scheme)
		if err != nil {
			return nil, err
		}
		c.byKind[gvk] = limits
	}
	return c, c.clients(o)
}

// clients makes the clients and what they need.
func (c *connection) clients(o *Options) (err error) {
	c.mapper = kinds.NewMapper(c.scheme)
	if o.MapperProvider != nil {
		if c.mapper, err = o.MapperProvider(c.config, c.GetHTTPClient()); err != nil {
			return err
		}
	}
	uncached, err := client.New(c.config, client.Options{Scheme: c.scheme, Mapper: c.mapper})
	if err != nil {
		return err
	}
	c.reader = uncached
	serveREST(uncached, kinds.NewMapper(c.scheme))
	c.cache = hostcache.New(c.scheme, c.reader)
	opts := o.Client
	if opts.Scheme == nil {
		opts.Scheme = c.scheme
	}
	if opts.Mapper == nil {
		opts.Mapper = c.mapper
	}
	reads := client.CacheOptions{}
	if opts.Cache != nil {
		reads = *opts.Cache
	}
	if reads.Reader == nil {
		reads.Reader = c.cache
	}
	opts.Cache = &reads
	if o.NewClient == nil {
		o.NewClient = client.New
	}
	c.client, err = o.NewClient(c.config, opts)
	return err
}

// serveREST answers requests of clients of client-go, in a program that has any.
var serveREST = func(client.Client, meta.RESTMapper) {}

// bound narrows the watches of a manifest by the options of the cache.
func (c *connection) bound(m *wasmctl.Manifest) {
	c.boundOne(m.For)
	for _, list := range [][]wasmctl.Watch{m.Owns, m.Watches} {
		for i := range list {
			c.boundOne(&list[i])
		}
	}
}

func (c *connection) boundOne(w *wasmctl.Watch) {
	by := c.byKind[schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}]
	if by.Namespaces == nil {
		by.Namespaces = c.limits.DefaultNamespaces
	}
	if by.Label == nil {
		by.Label = c.limits.DefaultLabelSelector
	}
	if by.Field == nil {
		by.Field = c.limits.DefaultFieldSelector
	}
	if _, all := by.Namespaces[cache.AllNamespaces]; !all {
		w.Namespaces = slices.Sorted(maps.Keys(by.Namespaces))
	}
	if by.Label != nil {
		w.LabelSelector = by.Label.String()
	}
	if by.Field != nil {
		w.FieldSelector = by.Field.String()
	}
}

// GetHTTPClient implements cluster.Cluster.
func (*connection) GetHTTPClient() *http.Client { return &http.Client{Transport: noTransport{}} }

// noTransport reaches nothing.
type noTransport struct{}

// RoundTrip implements http.RoundTripper.
func (noTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("manager: a module has no network; use the client of the manager")
}

// GetConfig implements cluster.Cluster.
func (c *connection) GetConfig() *rest.Config { return c.config }

// GetCache implements cluster.Cluster.
func (c *connection) GetCache() cache.Cache { return c.cache }

// GetScheme implements cluster.Cluster.
func (c *connection) GetScheme() *runtime.Scheme { return c.scheme }

// GetClient implements cluster.Cluster.
func (c *connection) GetClient() client.Client { return c.client }

// GetFieldIndexer implements cluster.Cluster.
func (c *connection) GetFieldIndexer() client.FieldIndexer { return c.cache }

// GetRESTMapper implements cluster.Cluster.
func (c *connection) GetRESTMapper() meta.RESTMapper { return c.mapper }

// GetAPIReader implements cluster.Cluster.
func (c *connection) GetAPIReader() client.Reader { return c.reader }

// GetEventRecorderFor implements recorder.Provider. The host names the
// controller in its events.
func (c *connection) GetEventRecorderFor(string) recorder.ObjectRecorder {
	c.events = true
	return hostevents.Recorder{Scheme: c.scheme}
}

// GetEventRecorder implements recorder.Provider.
func (c *connection) GetEventRecorder(string) recorder.EventRecorder {
	c.events = true
	return hostevents.Actions{Recorder: hostevents.Recorder{Scheme: c.scheme}}
}
