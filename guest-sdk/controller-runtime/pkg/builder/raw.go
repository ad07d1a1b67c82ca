// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_018

package builder

import (
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// WatchesRawSource adds a source. In a module, only source.Kind is supported.
func (b *TypedBuilder[request]) WatchesRawSource(src source.TypedSource[request]) *TypedBuilder[request] {
	b.sources = append(b.sources, src)
	return b
}

func (*TypedBuilder[request]) watch(c controller.TypedController[request], src source.TypedSource[request]) error {
	return c.Watch(src)
}
