// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// watchModule swaps the module whenever its file changes, until ctx ends. sum is the checksum of the file
// when it was read last.
func (o *Follower) watchModule(ctx context.Context, path string, sum [sha256.Size]byte) {
	file := filewatch.File{
		Path: path, Sum: sum, MaxSize: load.MaxModuleSize,
		OnChange: func(ctx context.Context, content []byte) {
			if !halfWritten(ctx, path, content, o.rest) { // the next write is another change
				_ = o.swap(ctx, wasmctl.File(path), "module file changed")
			}
		},
		OnError: func(err error) {
			o.log().Warn("cannot read the module file; keeping the running module", "error", err.Error())
		},
		OnPolling: o.polls,
	}
	_ = file.Run(ctx) // OnPolling has logged the error
}

// writeRest is the maximum pause of an incomplete file while it is being written, because a transfer
// over a network may pause. writeLook is the interval of the checks.
const (
	writeRest = 2 * time.Second
	writeLook = 100 * time.Millisecond
)

// halfWritten reports whether a file is still being written: its content is not a valid module, and
// changes within rest.
func halfWritten(ctx context.Context, path string, content []byte, rest time.Duration) bool {
	if wasm, err := load.Unpack(content); err == nil && len(load.Inspect(ctx, wasm).Problems) == 0 {
		return false
	}
	was := sha256.Sum256(content)
	look := time.NewTicker(writeLook)
	defer look.Stop()
	rested := time.NewTimer(rest)
	defer rested.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-rested.C:
			return false
		case <-look.C:
		}
		if _, now, _ := wasmctl.File(path).ReadSum(); now != was {
			return true
		}
	}
}
