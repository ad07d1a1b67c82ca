// SPDX-License-Identifier: Apache-2.0

// Package newcache connects package cache with the package that makes caches,
// which imports package cache.
package newcache

import "sigs.k8s.io/controller-runtime/pkg/internal/rest"

// Make makes a cache.Cache with cache.Options. Package hostcache sets it.
var Make func(config *rest.Config, options any) (any, error)
