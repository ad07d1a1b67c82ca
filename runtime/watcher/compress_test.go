// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// TestWatch_CompressesWhatIsNotRead: most of a first list at once, in any format, and the rest after a while; but not
// objects that are read, no Secrets, and nothing unless enabled.
func TestWatch_CompressesWhatIsNotRead(t *testing.T) {
	const n = 1000
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("setting: the value of object %d\n", i), 80) }
	for _, c := range []struct {
		name, resource string
		cfg            watcher.Config
		streams        error
		atOnce, atLast int
	}{
		{"streamed list", "configmaps", watcher.Config{Compress: true}, nil, 500, n - 1},
		{"plain list", "configmaps", watcher.Config{Compress: true}, errNoStreams, 500, n - 1},
		{"secrets", "secrets", watcher.Config{Compress: true}, nil, 0, 0},
		{"off", "configmaps", watcher.Config{}, nil, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				objects := api.of(resource(c.resource))
				for i := range n {
					objects.set(fmt.Sprint("n", i), content(i))
				}
				if c.streams != nil {
					objects.failWith(c.streams, "stream")
				}
				u := subscribe(t, api.set(c.cfg), watcher.Source{Resource: resource(c.resource)})
				<-u.sub.Synced()
				hot := u.sub.Store().Get(reflector.ObjectRef{Namespace: "ns", Name: "n7"})
				compressed := func() (sum int) {
					for _, o := range u.sub.Store().List() {
						if o.Saved() > 0 {
							sum++
						}
					}
					return sum
				}
				if got := compressed(); got < c.atOnce || got > 0 && c.atOnce == 0 {
					t.Errorf("after the list, %d objects are compressed, want %d", got, c.atOnce)
				}
				for range 30 {
					hot.Msgpack()
					hot.Msgpack()
					after(10 * time.Second)
				}
				if got := compressed(); got != c.atLast {
					t.Errorf("after some minutes, %d objects are compressed, want %d", got, c.atLast)
				}
				if st := u.sub.State(); st.Compressed != c.atLast || (st.Saved > st.Bytes/2) != (c.atLast > 0) {
					t.Errorf("the state says %d compressed, %d of %d bytes saved", st.Compressed, st.Saved, st.Bytes)
				}
				u.agrees(objects)
				u.end()
			})
		})
	}
}
