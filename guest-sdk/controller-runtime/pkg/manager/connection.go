// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/defaultscheme"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostcache"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostevents"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// connection has the clients and settings for the cluster of a manager.
type connection struct {
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	cache  *hostcache.Cache
	front  cache.Cache // cache, or the program's wrapper of it
	client client.Client
	reader client.Reader
	bounds hostcache.Bounds
	events bool // the program has requested a recorder
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
	}
	c := &connection{config: cfg, scheme: o.Scheme}
	return c, c.clients(o)
}

// clients makes the clients and their dependencies.
func (c *connection) clients(o *Options) (err error) {
	kindsOfScheme := kinds.NewMapper(c.scheme)
	c.mapper = kindsOfScheme
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
	serveREST(uncached, kindsOfScheme)
	if err := c.openCache(o); err != nil {
		return err
	}
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
		reads.Reader = c.front
	}
	opts.Cache = &reads
	if o.NewClient == nil {
		o.NewClient = client.New
	}
	c.client, err = o.NewClient(c.config, opts)
	return err
}

// serveREST sets up the answers to clients of client-go, in programs that use
// them.
var serveREST = func(client.Client, meta.RESTMapper) {}

// openCache makes the cache, or calls the program's NewCache.
func (c *connection) openCache(o *Options) (err error) {
	if o.NewCache == nil {
		c.cache = hostcache.New(c.scheme, c.reader)
		c.front = c.cache
		c.bounds, err = hostcache.NewBounds(c.scheme, o.Cache)
		return err
	}
	opts := o.Cache
	opts.Scheme, opts.Mapper = c.scheme, c.mapper
	made, err := hostcache.Made(func() (err error) {
		c.front, err = o.NewCache(c.config, opts)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(made) != 1:
		return fmt.Errorf("Options.NewCache: called cache.New %d times: a module has one cache, that of its host; call it once, or use Options.Cache", len(made))
	}
	c.cache = made[0]
	c.bounds = c.cache.Join(c.reader)
	return nil
}

// bound restricts the watches of a manifest by the options of the cache, except
// for the kinds in wide, which the program watches with a separate cache.
func (c *connection) bound(m *wasmctl.Manifest, wide map[schema.GroupVersionKind]bool) {
	c.boundOne(m.For, wide)
	for _, list := range [][]wasmctl.Watch{m.Owns, m.Watches} {
		for i := range list {
			c.boundOne(&list[i], wide)
		}
	}
}

func (c *connection) boundOne(w *wasmctl.Watch, wide map[schema.GroupVersionKind]bool) {
	gvk := schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
	if wide[gvk] {
		return
	}
	b := c.bounds.Of(gvk)
	w.Namespaces = b.Namespaces
	if b.Label != nil {
		w.LabelSelector = b.Label.String()
	}
	if b.Field != nil {
		w.FieldSelector = b.Field.String()
	}
}

// GetHTTPClient implements cluster.Cluster.
func (c *connection) GetHTTPClient() *http.Client { return rest.HTTPClient(c.config) }

// GetConfig implements cluster.Cluster.
func (c *connection) GetConfig() *rest.Config { return c.config }

// GetCache implements cluster.Cluster.
func (c *connection) GetCache() cache.Cache { return c.front }

// GetScheme implements cluster.Cluster.
func (c *connection) GetScheme() *runtime.Scheme { return c.scheme }

// GetClient implements cluster.Cluster.
func (c *connection) GetClient() client.Client { return c.client }

// GetFieldIndexer implements cluster.Cluster.
func (c *connection) GetFieldIndexer() client.FieldIndexer { return c.front }

// GetRESTMapper implements cluster.Cluster.
func (c *connection) GetRESTMapper() meta.RESTMapper { return c.mapper }

// GetAPIReader implements cluster.Cluster.
func (c *connection) GetAPIReader() client.Reader { return c.reader }

// GetEventRecorderFor implements recorder.Provider. The host sets the name of
// the controller in its events.
func (c *connection) GetEventRecorderFor(string) recorder.ObjectRecorder {
	c.events = true
	return hostevents.Recorder{Scheme: c.scheme}
}

// GetEventRecorder implements recorder.Provider.
func (c *connection) GetEventRecorder(string) recorder.EventRecorder {
	c.events = true
	return hostevents.Actions{Recorder: hostevents.Recorder{Scheme: c.scheme}}
}
