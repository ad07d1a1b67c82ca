// SPDX-License-Identifier: Apache-2.0

// Package cluster describes the cluster of a manager.
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

// Cluster is the only cluster of a module.
type Cluster interface {
	recorder.Provider
	// GetHTTPClient returns an HTTP client for the clients of client-go, which
	// sends requests to the API server.
	GetHTTPClient() *http.Client
	// GetConfig returns a configuration for clients of this module.
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

	// The fields below are those of version 0.15.
	Namespace             string
	ClientDisableCacheFor []client.Object
	DryRunClient          bool
}

// Option changes the options.
type Option func(*Options)

// New returns an error: a module works only in the cluster of its manager.
func New(*rest.Config, ...Option) (Cluster, error) {
	return nil, errors.New("cluster: a module works in one cluster: use the manager, which is a cluster too")
}
