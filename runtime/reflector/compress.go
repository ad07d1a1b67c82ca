// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

// Bounds of compression.
const (
	// minCompressed is the size of the smallest object that is compressed. A smaller one uses most of its memory for other fields.
	minCompressed = 256
	// maxCompressed is the size of the largest object that is compressed. Decompressing it takes 5 µs.
	maxCompressed = 8 << 10
	// oftenRead is the number of reads between two looks after which an object stays uncompressed. A resync, which reads each object once,
	// does not reach it.
	oftenRead = 2
	// firstSample is the number of bytes of objects from which the first dictionary is built. With its table, a dictionary takes 96 KiB.
	// Each further dictionary needs twice as many bytes of objects that the previous ones did not compress well.
	firstSample     = 1 << 20
	maxDictionaries = 8
	// usualStart is the number of bytes of an object that are searched for in the sample, as a typical start of objects. Searching for all
	// of them would take 0.2 s.
	usualStart = 32
)

// Compressor compresses objects of one store that are not being read, using a dictionary built from a sample of the objects. It decides and
// computes, but has no clock: the owner of the store calls it. It is safe for concurrent use.
type Compressor struct {
	mu     sync.Mutex
	newest *s2.Dict // guarded by mu; nil before the first
	made   uint8    // guarded by mu; number of dictionaries built so far
	unfit  int64    // guarded by mu; bytes of objects that the newest dictionary does not compress well
	sample []byte   // guarded by mu; an even sample of those objects
	packed []byte   // guarded by mu; scratch
	plain  []byte   // guarded by mu; scratch
}

// body holds the bytes of an object. It is immutable.
type body struct {
	bytes      []byte
	dictionary *s2.Dict // required to decode the bytes; nil if they are uncompressed
}

// plain returns the uncompressed bytes, which have the given size.
func (b *body) plain(size int) []byte {
	if b.dictionary == nil {
		return b.bytes
	}
	plain, err := b.dictionary.Decode(make([]byte, size), b.bytes)
	if err != nil {
		panic(fmt.Sprintf("BUG: a compressed object: %v", err)) // Compress has verified it
	}
	return plain
}

// Look compresses an object of the store if it was not read since the last look, and returns the bytes that compression saves.
func (c *Compressor) Look(o *Object) (saved int) {
	if o.reads.Swap(0) == 0 {
		c.Compress(o)
	}
	return o.Saved()
}

// Saved returns how many bytes compression saves for the object; 0 if it is uncompressed.
func (o *Object) Saved() int { return int(o.size) - len(o.body.Load().bytes) }

// Compress compresses an object if that at least halves its size. Only the Compressor of its store may call it. An object without a
// resourceVersion is not compressed: code that remembers byte positions within a state relies on states having versions.
func (c *Compressor) Compress(o *Object) {
	plain := o.body.Load()
	if plain.dictionary != nil || o.resourceVersion == "" || o.size < minCompressed || o.size > maxCompressed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.tried > c.made {
		return
	}
	if packed := c.compress(plain.bytes); packed != nil {
		o.body.Store(&body{bytes: packed, dictionary: c.newest})
		return
	}
	o.tried = c.made + 1
	c.learn(plain.bytes)
}

// compress returns b compressed, or nil if that is not worthwhile. The result has been verified by decompressing it, so that a bug of the
// library cannot corrupt an object. The caller must hold mu.
func (c *Compressor) compress(b []byte) []byte {
	if c.newest == nil {
		return nil
	}
	c.packed = c.newest.Encode(slices.Grow(c.packed[:0], s2.MaxEncodedLen(len(b))), b)
	if len(c.packed) > len(b)/2 {
		return nil
	}
	again, err := c.newest.Decode(slices.Grow(c.plain[:0], len(b)), c.packed)
	if c.plain = again; err != nil || !bytes.Equal(again, b) {
		return nil
	}
	return bytes.Clone(c.packed)
}

// learn adds bytes that no dictionary compresses well to the sample, and builds the next dictionary once the sample is complete. The caller
// must hold mu.
func (c *Compressor) learn(b []byte) {
	if c.made == maxDictionaries {
		return
	}
	need := int64(firstSample) << c.made
	if part := need / s2.MaxDictSize; int64(len(c.sample))*part <= c.unfit {
		c.sample = append(c.sample, b[:min(len(b), s2.MaxDictSize-len(c.sample))]...)
	}
	if c.unfit += int64(len(b)); c.unfit < need {
		return
	}
	if next := s2.MakeDict(slices.Clip(c.sample), b[:min(len(b), usualStart)]); next != nil {
		c.newest = next
		c.made++
	}
	c.sample, c.unfit = nil, 0
}
