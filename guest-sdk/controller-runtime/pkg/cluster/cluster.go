// Package cluster has what a manager knows of its cluster.
package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Cluster is the one cluster that a module works in.
type Cluster interface {
	recorder.Provider
	// GetHTTPClient returns a client for requests to the API server, for clients of client-go.
	GetHTTPClient() *http.Client
	// GetConfig returns a configuration that no other client takes.
	GetConfig() *rest.Config
	// GetCache returns the host's copies of the watched objects.
	GetCache() cache.Cache
	// GetScheme returns the scheme of the options.
	GetScheme() *runtime.Scheme
	// GetClient returns the client, which reads watched kinds from the cache.
	GetClient() client.Client
	// GetFieldIndexer registers indexes.
	GetFieldIndexer() client.FieldIndexer
	// GetRESTMapper maps kinds to resources.
	GetRESTMapper() meta.RESTMapper
	// GetAPIReader reads from the API server.
	GetAPIReader() client.Reader
	// Start waits until ctx is done.
	Start(ctx context.Context) error
}

// Options of a cluster.
type Options struct {
	Scheme           *runtime.Scheme
	MapperProvider   func(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error)
	Logger           logr.Logger
	HTTPClient       *http.Client
	Cache            cache.Options
	NewCache         cache.NewCacheFunc
	Client           client.Options
	NewClient        client.NewClientFunc
	EventBroadcaster any
	SyncPeriod       *time.Duration

	// What follows is of version 0.15.
	Namespace             string
	ClientDisableCacheFor []client.Object
	DryRunClient          bool
}

// Option changes the options.
type Option func(*Options)

// New is an error: a module has the one cluster that its manager has.
func New(*rest.Config, ...Option) (Cluster, error) {
	return nil, errors.New("cluster: a module works in one cluster: use the manager, which is a cluster too")
}
