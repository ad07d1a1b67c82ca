// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"slices"
	"time"
)

// Times and sizes of compression.
const (
	// compressEvery is the minimum time for which an object is not read before it is compressed.
	compressEvery = time.Minute
	// compressChunk is the number of objects that are compressed without a pause, which takes 1 ms.
	compressChunk = 256
	compressRest  = 5 * time.Millisecond
)

// saving is the effect of compression that a round has measured.
type saving struct {
	objects int
	bytes   int64
}

// compress checks all objects of the store periodically until ctx ends.
func (w *sharedWatch) compress(ctx context.Context) {
	for pause(ctx, compressEvery) {
		now := &saving{}
		for chunk := range slices.Chunk(w.writer.Store().List(), compressChunk) {
			for _, o := range chunk {
				if saved := w.kind.compressor.Look(o); saved > 0 {
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
