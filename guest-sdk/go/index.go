// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"sync"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Index finds objects in the cache by values that the module derives from them.
// The module reports the values of each version of an object to the host once.
// Lists that ask for another value then leave the object out.
//
//	var byImage = wasmctl.NewIndex("image") // a package variable, because it must outlive a run
//
//	for pod, err := range ctx.Cache().All(pods, wasmctl.CacheListOptions{Index: byImage, Value: image}) {
//		if values := images(pod); err == nil && !slices.Contains(values, image) {
//			byImage.Tell(pod, values)
//			continue
//		}
//		...
//	}
type Index struct {
	name string

	mu   sync.Mutex
	told []any // entries that were not sent to the host yet; guarded by mu
}

// maxTold bounds the number of entries that wait for the next list. An object
// whose entry is lost only appears in one more list.
const maxTold = 2000

// NewIndex returns an index. For the host, two indexes with one name are the
// same index of a kind. The values of an object must depend only on the object.
// If they depend on something more, for example a setting, make that part of
// the name.
func NewIndex(name string) *Index { return &Index{name: name} }

// Tell records the values of an object from the cache. The next list by the
// index reports them to the host. Call it only for objects that lack the
// requested value: the host gains nothing from the others.
func (x *Index) Tell(o Object, values []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.told) < maxTold {
		x.told = append(x.told, Map{
			"namespace": o.Namespace(), "name": o.Name(), "uid": o.UID(), "resourceVersion": o.ResourceVersion(), "values": values,
		})
	}
}

// append writes the keys of a list by the index. A nil index writes none.
func (x *Index) append(b *wire.Builder, value string) error {
	if x == nil {
		return nil
	}
	b.String("index", x.name)
	b.String("value", value)
	x.mu.Lock()
	defer x.mu.Unlock()
	told := x.told
	if x.told = nil; len(told) == 0 {
		return nil
	}
	return b.Value("entries", told)
}
