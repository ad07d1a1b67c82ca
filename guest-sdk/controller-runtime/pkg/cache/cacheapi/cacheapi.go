// SPDX-License-Identifier: Apache-2.0

// Package cacheapi has aliases for names of the packages cache and client.
package cacheapi

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	// Object is a Kubernetes object.
	Object = client.Object
	// IndexerFunc returns the values of a field.
	IndexerFunc = client.IndexerFunc
	// FieldIndexer registers indexes.
	FieldIndexer = client.FieldIndexer
	// Informers gives access to watches.
	Informers = cache.Informers
	// Informer represents a watch.
	Informer = cache.Informer
	// InformerGetOptions have no effect.
	InformerGetOptions = cache.InformerGetOptions
	// InformerGetOption changes the options.
	InformerGetOption = cache.InformerGetOption
)

// BlockUntilSynced sets InformerGetOptions.BlockUntilSynced.
func BlockUntilSynced(shouldBlock bool) InformerGetOption { return cache.BlockUntilSynced(shouldBlock) }
