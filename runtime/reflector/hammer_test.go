package reflector_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// One writer and many readers: each snapshot is one of the contents that were
// written as a whole (rule 11), under the race detector.
func TestStore_HammerReadersDuringReplace(t *testing.T) {
	const size = 50
	generations := make([][]*reflector.Object, 8)
	for g := range generations {
		for i := range size {
			generations[g] = append(generations[g], state(t, name(fmt.Sprint("n", i+g)), g, g+1))
		}
	}
	w := reflector.NewWriter()
	w.Replace(generations[0], func(reflector.Event) {})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := oneGeneration(w.Store().List(), size); err != nil {
					t.Error(err)
					return
				}
				w.Store().Get(name("n3"))
				w.Store().Len()
				w.Store().Bytes()
			}
		})
	}
	for i := range 200 {
		w.Replace(generations[i%len(generations)], func(reflector.Event) {})
	}
	close(stop)
	readers.Wait()
}

func oneGeneration(list []*reflector.Object, size int) error {
	for _, o := range list {
		if o.UID() != list[0].UID() {
			return fmt.Errorf("snapshot mixes %s and %s", o.UID(), list[0].UID())
		}
	}
	if len(list) != size {
		return fmt.Errorf("snapshot has %d objects, want %d", len(list), size)
	}
	return nil
}
