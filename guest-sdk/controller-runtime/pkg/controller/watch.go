// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_018

package controller

import "sigs.k8s.io/controller-runtime/pkg/source"

// Watcher is the part of a TypedController that differs before version 0.18.
type Watcher[request comparable] interface {
	// Watch adds a source of events.
	Watch(src source.TypedSource[request]) error
}

// Watch implements Watcher.
func (c *declared[request]) Watch(src source.TypedSource[request]) error { return c.watch(src) }
