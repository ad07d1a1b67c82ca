// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_018

package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Watcher is the part of a TypedController that differs from version 0.18 on.
type Watcher[request comparable] interface {
	// Watch adds a source of events, with their handler.
	Watch(src source.TypedSource[request], h handler.TypedEventHandler[client.Object, request], predicates ...predicate.Predicate) error
}

// Watch implements Watcher.
func (c *declared[request]) Watch(src source.TypedSource[request], h handler.TypedEventHandler[client.Object, request], predicates ...predicate.Predicate) error {
	return c.watch(source.Handled[request](src, h, predicates...))
}
