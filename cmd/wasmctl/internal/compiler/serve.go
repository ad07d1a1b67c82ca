// SPDX-License-Identifier: Apache-2.0

package compiler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
)

// maxCode limits the input: a module of the maximum size, with its metering.
const maxCode = 1 << 30

// ErrNoJob is the error of Serve if stdin has no job, for example because somebody typed the
// command.
var ErrNoJob = errors.New("compile-for-run: for internal use: wasmctl run starts it to compile a module in a separate process")

// Serve runs the process that compiles. It reads a job, does it within its limits and writes the
// answer. It exits when in ends, because its parent is then gone.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadSlice('\n') // up to 4 KiB: a path, and numbers
	if err != nil {
		return ErrNoJob
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil || j.Dir == "" || j.Size < 0 || j.Size > maxCode {
		return ErrNoJob
	}
	code := make([]byte, j.Size)
	if _, err := io.ReadFull(r, code); err != nil {
		return fmt.Errorf("compiler: read the module: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, r)
		os.Exit(1)
	}()
	if err := subprocess.Bound(subprocess.Limits{Memory: j.Limits.Memory, Time: j.Limits.Time}); err != nil {
		return fmt.Errorf("compiler: bounds: %w", err)
	}
	// A module that takes over the compiler finds only the directory of its own code: no network,
	// no programs and no other files.
	if _, err := harden.Apply(j.Limits.Harden, &harden.Policy{Write: []string{j.Dir}, Alone: true}); err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	err = load.Compilation{Dir: j.Dir, Code: code, Workers: j.Workers}.Run(ctx)
	var a answer
	if err != nil {
		a = answer{Error: err.Error(), Cache: errors.Is(err, load.ErrCacheDir)}
	}
	return json.NewEncoder(out).Encode(a)
}
