// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

const (
	// maxValues is the maximum number of values and keys in a request or a declared object: 4 MiB
	// of empty maps would take 270 MiB in Go.
	maxValues = 200_000
	// maxText limits names and similar texts, and maxSelector limits selectors and continue tokens,
	// in bytes.
	maxText     = 1 << 10
	maxSelector = 16 << 10
	// maxRequirements is the maximum number of requirements in a label selector on the cache. Each
	// object is compared with all of them.
	maxRequirements = 100
)

// checkValues refuses a message whose decoded form would take too much memory.
func checkValues(b []byte) error {
	if len(b) <= maxValues { // each takes at least a byte
		return nil
	}
	if n, _ := packed.Measure(b); n > maxValues {
		return tooMany("has %d values and keys, the limit is %d", n, maxValues)
	}
	return nil
}

// head is the kind and identity of an object. It is decoded before the rest, so that a denied
// request costs nothing.
type head struct {
	apiVersion, kind, name, namespace string

	generateName bool
}

// readHead reads the head of an object that abi.Check has accepted.
func readHead(object []byte, where string) (head, error) {
	var h head
	if packed.FormOf(object) != packed.Map {
		return h, badf("%s: must be a map", where)
	}
	c := packed.At(object)
	for range c.MapLen() {
		var err error
		switch key := c.Text(); string(key) {
		case "apiVersion":
			err = textAt(&h.apiVersion, c.Value(), where+".apiVersion")
		case "kind":
			err = textAt(&h.kind, c.Value(), where+".kind")
		case "metadata":
			err = h.metadata(c.Value(), where+".metadata")
		default:
			c.Skip()
		}
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *head) metadata(meta []byte, where string) error {
	switch {
	case packed.IsNil(meta):
		return nil
	case packed.FormOf(meta) != packed.Map:
		return badf("%s: must be a map", where)
	}
	c := packed.At(meta)
	for range c.MapLen() {
		var err error
		switch key := c.Text(); string(key) {
		case "name":
			err = textAt(&h.name, c.Value(), where+".name")
		case "namespace":
			err = textAt(&h.namespace, c.Value(), where+".namespace")
		case "generateName":
			h.generateName = !packed.IsNil(c.Value())
		default:
			c.Skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// textAt reads a text, or "" for nil.
func textAt(to *string, value []byte, where string) error {
	if packed.IsNil(value) {
		*to = ""
		return nil
	}
	if packed.FormOf(value) != packed.Text {
		return badf("%s: must be a string", where)
	}
	c := packed.At(value)
	text := c.Text()
	if err := checkText(where, len(text), maxText); err != nil {
		return err
	}
	*to = string(text)
	return nil
}

// checkText refuses a text that is longer than any valid one.
func checkText(what string, length, limit int) error {
	if length > limit {
		return badf("%s: has %d bytes, the limit is %d", what, length, limit)
	}
	return nil
}

// tooMany is the error about too many parts. The guest gets it as StatusTooLarge.
func tooMany(format string, args ...any) error {
	return &refusal{status: abi.StatusTooLarge, message: fmt.Sprintf(format, args...)}
}
