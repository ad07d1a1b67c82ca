// SPDX-License-Identifier: Apache-2.0

package hostcache

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/internal/newcache"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

func init() {
	newcache.Make = func(config *rest.Config, options any) (any, error) { return own(config, options.(cache.Options)) } //nolint:forcetypeassert // package cache passes this type
}

// made receives the caches that Options.NewCache makes while a manager calls
// it.
var made func(*Cache)

// own returns a cache that is separate from the manager's. It reads from the
// API server, within its restrictions.
func own(config *rest.Config, o cache.Options) (*Cache, error) {
	api, err := client.New(config, client.Options{Scheme: o.Scheme, Mapper: o.Mapper})
	if err != nil {
		return nil, err
	}
	bounds, err := NewBounds(api.Scheme(), o)
	if err != nil {
		return nil, err
	}
	c := New(api.Scheme(), bounded{api, bounds})
	c.own = &bounds
	if made != nil {
		made(c)
	}
	return c, nil
}

// Made returns the caches that f makes.
func Made(f func() error) (list []*Cache, err error) {
	made = func(c *Cache) { list = append(list, c) }
	defer func() { made = nil }()
	return list, f()
}

// Join makes a separate cache the manager's cache, and returns its
// restrictions.
func (c *Cache) Join(api client.Reader) Bounds {
	bounds := *c.own
	c.own, c.api = nil, api
	return bounds
}

// IsOwn reports whether a cache is separate from the manager's.
func IsOwn(c any) bool {
	own, ok := c.(*Cache)
	return ok && own.own != nil
}
