// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_018

package builder

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// raw is a source with its handler.
type raw[request comparable] struct {
	source.TypedSource[request]
	handler handler.TypedEventHandler[client.Object, request]
	in      WatchesInput[request]
}

// WatchesRawSource adds a source. In a module, only source.Kind is supported.
func (b *TypedBuilder[request]) WatchesRawSource(src source.TypedSource[request], h handler.TypedEventHandler[client.Object, request], opts ...WatchesOption) *TypedBuilder[request] {
	r := &raw[request]{TypedSource: src, handler: h}
	for _, opt := range opts {
		opt.ApplyToWatches(&r.in)
	}
	b.sources = append(b.sources, r)
	return b
}

func (b *TypedBuilder[request]) watch(c controller.TypedController[request], src source.TypedSource[request]) error {
	if r, ok := src.(*raw[request]); ok {
		return c.Watch(r.TypedSource, r.handler, slices.Concat(b.filters, r.in.predicates)...)
	}
	return c.Watch(src, nil)
}
