// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

const (
	// maxPatchOps is the API server's limit on the operations of a JSON patch.
	maxPatchOps = 10_000
	// patchStep is the number of operations that DryRunClient applies between two checks of the
	// run's time and the object's size.
	patchStep = 16
	// maxStrategic limits the values of a strategic patch in DryRunClient: merging lists compares
	// each item of one list with each of the other.
	maxStrategic = 10_000
)

// checkOps limits the operations of a JSON patch before they are decoded.
func (r *request) checkOps() error {
	c := packed.At(r.Patch)
	if n := c.ArrayLen(); n > maxPatchOps {
		return tooMany("patch: has %d operations, the limit is %d", n, maxPatchOps)
	}
	return nil
}

// checkStrategic limits a strategic patch that the host itself applies.
func (r *request) checkStrategic(body []byte) error {
	if n := packed.CountJSON(body); n > maxStrategic {
		return tooMany("patch: has %d values and keys, the limit is %d for strategic patches with --dry-run=client", n, maxStrategic)
	}
	return nil
}

// applyOps applies a JSON patch in steps, and checks the time and the size of the object after each
// one. A copy is a step of its own, so that it can at most double the object.
func applyOps(ctx context.Context, object, body []byte) ([]byte, error) {
	ops, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	for len(ops) > 0 {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		n := 1
		for ops[0].Kind() != "copy" && n < min(patchStep, len(ops)) && ops[n].Kind() != "copy" {
			n++
		}
		if object, err = ops[:n].Apply(object); err != nil {
			return nil, err
		}
		if len(object) > abi.MaxBytes {
			return nil, fmt.Errorf("the object would have %d bytes, the limit is %d", len(object), abi.MaxBytes)
		}
		ops = ops[n:]
	}
	return object, nil
}
