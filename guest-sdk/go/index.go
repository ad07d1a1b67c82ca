package wasmctl

import (
	"sync"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Index finds objects in the cache by values that the module derives from them. The
// module tells the host the values of an object once for each of its versions; then
// lists that look for another value leave the object out.
//
//	var byImage = wasmctl.NewIndex("image") // of the package: it lasts longer than a run
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
	told []any // entries that the host does not have yet; guarded by mu
}

// maxTold bounds what an index keeps for the next list. What it forgets is listed once
// more.
const maxTold = 2000

// NewIndex returns an index. Those of one name are the same to the host, for each kind.
// The values of an object must depend on nothing else, so what they do depend on, such
// as a setting, has to be part of the name.
func NewIndex(name string) *Index { return &Index{name: name} }

// Tell notes the values of an object from the cache. The next list by the index tells
// the host. Only an object that lacks the value that was looked for is news to it.
func (x *Index) Tell(o Object, values []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.told) < maxTold {
		x.told = append(x.told, Map{
			"namespace": o.Namespace(), "name": o.Name(), "uid": o.UID(), "resourceVersion": o.ResourceVersion(), "values": values,
		})
	}
}

// append writes the keys of a list by the index; nil has none.
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
