// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// objects is a store with a number of objects.
type objects struct {
	n   int
	err error
}

func (o *objects) Len() (int, error) { return o.n, o.err }

// TestCounts_TriggersWhatHasChanged: a Reconciler is looked at if its number of objects differs from the one in its status, at most once in an
// interval, and others are not.
func TestCounts_TriggersWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same, changed, failed, other := &objects{n: 3}, &objects{n: 3}, &objects{n: 4, err: errors.New("it has ended")}, &objects{n: 4}
		of := func(kind, name string) id { return id{kind, abi.Key{Namespace: "t01", Name: name}} }
		s := &Server{units: map[id]*unit{
			of(v1alpha1.KindNamespaced, "same"):    {store: same, objects: 3},
			of(v1alpha1.KindNamespaced, "changed"): {store: changed, objects: 3},
			of(v1alpha1.KindNamespaced, "failed"):  {store: failed, objects: 3},
			of(v1alpha1.KindNamespaced, "new"):     {},
			of(v1alpha1.KindCluster, "other"):      {store: other, objects: 3},
		}}
		ctx, stop := context.WithCancel(t.Context())
		var asked []abi.Key
		ended := make(chan error)
		go func() {
			ended <- counts{s, v1alpha1.KindNamespaced}.Run(ctx, func(_ context.Context, keys ...abi.Key) { asked = append(asked, keys...) })
		}()
		after := func(d time.Duration, want ...abi.Key) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Error(diff)
			}
			asked = nil
		}
		key := abi.Key{Namespace: "t01", Name: "changed"}
		after(2 * countEvery)
		changed.n = 5
		after(countEvery, key)
		s.units[of(v1alpha1.KindNamespaced, "changed")].objects = 5 // the status has it
		after(2 * countEvery)
		changed.n = 0
		after(countEvery, key)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A Reconciler that is being deleted has the number in its status after its controller has ended.
func TestCounts_NeedAController(t *testing.T) {
	u := &unit{}
	u.setCount(&v1alpha1.Objects{Watched: 3})
	if u.countChanged() {
		t.Error("the number of objects without a controller has changed")
	}
}
