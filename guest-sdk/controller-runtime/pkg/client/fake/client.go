// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fakeClient is the client of a module, with a server in place of the host.
type fakeClient struct {
	client.Client
	s *server
}

// Watch implements client.WithWatch. It reports later changes and ignores
// selectors.
func (c *fakeClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	gvk, err := c.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	o := (&client.ListOptions{}).ApplyOptions(opts)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err := c.s.know(gvk); err != nil {
		return nil, err
	}
	return c.s.tracker.Watch(resourceOf(gvk), o.Namespace)
}

// AddIndex adds an index to a client of this package, as a program does with
// mgr.GetFieldIndexer.
func AddIndex(c client.Client, obj runtime.Object, field string, extractValue client.IndexerFunc) error {
	f, ok := c.(*fakeClient)
	if !ok {
		panic(fmt.Errorf("fake: AddIndex(%T): not a client of this package", c))
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.indexes.add(obj, f.s.given, field, extractValue)
}
