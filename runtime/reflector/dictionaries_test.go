// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Each dictionary needs twice as many bytes that the previous ones do not compress well, and their number is limited;
// rounds over the same objects create no further ones.
func TestCompressor_MakesFewDictionaries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(i int) *Object {
		b := make([]byte, 7<<10)
		for k := range b {
			b[k] = byte('0' + rnd.UintN(64))
		}
		o, err := Pack(map[string]any{"metadata": map[string]any{"name": fmt.Sprint("n", i), "resourceVersion": "1"}, "data": string(b)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	c, want, bytes := &Compressor{}, 0, int64(0)
	for i := range 6000 { // 43 MB
		o := random(i)
		if c.Compress(o); o.Saved() == 0 {
			bytes += int64(o.size)
		}
		for want < maxDictionaries && bytes >= (firstSample<<(want+1))-firstSample {
			want++
		}
		if int(c.made) > want {
			t.Fatalf("%d dictionaries after %d bytes, want %d", c.made, bytes, want)
		}
		if cap(c.sample) > 256<<10 {
			t.Fatalf("the sample has %d bytes", cap(c.sample))
		}
	}
	if c.made != 5 {
		t.Errorf("%d dictionaries, want 5", c.made)
	}
	c.made = maxDictionaries
	for i := range 1000 {
		if c.Compress(random(i)); c.made != maxDictionaries || cap(c.sample) > 256<<10 {
			t.Fatalf("%d dictionaries, and a sample of %d bytes", c.made, cap(c.sample))
		}
	}
	few, some := &Compressor{}, make([]*Object, 100)
	for i := range some {
		some[i] = random(i)
	}
	for range 100 {
		for _, o := range some {
			few.Look(o)
		}
	}
	if few.made > 0 {
		t.Error("objects of 800 KB together have a dictionary: they were counted more than once")
	}
}
