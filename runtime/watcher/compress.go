package watcher

import (
	"context"
	"slices"
	"time"
)

// Rounds of compression.
const (
	// compressEvery is how long an object is not read before it is compressed, at least.
	compressEvery = time.Minute
	// compressChunk is how many objects are compressed without a rest: 1 ms.
	compressChunk = 256
	compressRest  = 5 * time.Millisecond
)

// saving is what compression saves, as a round has found it.
type saving struct {
	objects int
	bytes   int64
}

// compress looks at all objects of the store, round by round, until ctx ends.
func (w *sharedWatch) compress(ctx context.Context) {
	for pause(ctx, compressEvery) {
		now := &saving{}
		for chunk := range slices.Chunk(w.writer.Store().List(), compressChunk) {
			for _, o := range chunk {
				if saved := w.compressor.Look(o); saved > 0 {
					now.objects++
					now.bytes += int64(saved)
				}
			}
			if !pause(ctx, compressRest) {
				return
			}
		}
		w.status.saving.Store(now)
	}
}
