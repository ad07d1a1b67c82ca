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
	// minCompressed is the least object that is compressed: of a smaller one, most
	// memory is what is kept beside the bytes.
	minCompressed = 256
	// maxCompressed is the largest: to read it takes 5 µs.
	maxCompressed = 8 << 10
	// oftenRead is how many reads between two looks keep an object plain from then on:
	// a resync, which reads each object once, compresses nothing less.
	oftenRead = 2
	// firstSample is how many bytes of objects the first dictionary is made of. With
	// its table, it takes 96 KiB. Each further one takes twice as many objects that
	// those before do not suit.
	firstSample     = 1 << 20
	maxDictionaries = 8
	// usualStart is how many bytes of an object are looked for in the sample, as where
	// objects begin like others. To look for all of them takes 0.2 s.
	usualStart = 32
)

// Compressor compresses the objects of one store that are not read, by what they have
// in common with others: a dictionary of a sample of them. It decides and computes,
// and knows no time: who owns the store calls it. It is safe for concurrent use.
type Compressor struct {
	mu     sync.Mutex
	newest *s2.Dict // guarded by mu; nil before the first
	made   uint8    // guarded by mu; how many dictionaries there were
	unfit  int64    // guarded by mu; bytes of objects that the newest does not suit
	sample []byte   // guarded by mu; of these objects, evenly
	packed []byte   // guarded by mu; scratch
	plain  []byte   // guarded by mu; scratch
}

// body is how an object holds its bytes. It never changes.
type body struct {
	bytes      []byte
	dictionary *s2.Dict // that the bytes need; nil for plain ones
}

// plain returns the bytes as they were, of this size.
func (b *body) plain(size int) []byte {
	if b.dictionary == nil {
		return b.bytes
	}
	plain, err := b.dictionary.Decode(make([]byte, size), b.bytes)
	if err != nil {
		panic(fmt.Sprintf("BUG: a compressed object: %v", err)) // Compress has tried it
	}
	return plain
}

// Look compresses an object of the store that was not read since the last look, and
// returns what that saves.
func (c *Compressor) Look(o *Object) (saved int) {
	if o.reads.Swap(0) == 0 {
		c.Compress(o)
	}
	return o.Saved()
}

// Saved returns how many bytes less the object takes by compression: 0 for a plain one.
func (o *Object) Saved() int { return int(o.size) - len(o.body.Load().bytes) }

// Compress compresses an object, where that makes it half as large. Only the
// Compressor of its store may. One without a resourceVersion stays as it is: who
// remembers where the bytes of a state are relies on states having versions.
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

// compress returns b compressed, or nil where that is not worth it. What is returned
// was read again: an error of the library must not become one of an object. The caller
// holds mu.
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

// learn takes a sample of what no dictionary suits, and in the end makes the next one
// of it. The caller holds mu.
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
