// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"errors"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// PausedAnnotation pauses an object: while it has this annotation, it is neither reconciled nor finalized. For the value, see Paused.
const PausedAnnotation = "wasmctl.dev/paused"

// Paused reports whether an object with this value of PausedAnnotation is paused. Every value pauses, be it "true" or a note for other
// people, except the empty string and the values that strconv.ParseBool parses as false.
func Paused(value string) bool {
	no, err := strconv.ParseBool(strings.TrimSpace(value))
	return strings.TrimSpace(value) != "" && (err != nil || no)
}

// head holds the fields of the object that a run uses.
type head struct {
	uid, resourceVersion string
	deleting             bool // deletion was requested
	paused               bool
	finalizer            bool // it has the module's finalizer
}

// headOf returns the head of an object in the store.
func headOf(o Object, finalizer string) head {
	value, noted := o.Annotation(PausedAnnotation)
	return head{
		uid: o.UID(), resourceVersion: o.ResourceVersion(), deleting: o.Deleting(), paused: noted && Paused(value),
		finalizer: finalizer != "" && o.HasFinalizer(finalizer),
	}
}

// readHead reads the metadata of a packed object returned by the API server. It skips the remainder, which is most of the object.
func readHead(object []byte, finalizer string) (h head, err error) {
	c := packed.At(object)
	for range c.MapLen() {
		if string(c.Text()) == "metadata" {
			h.read(&c, finalizer)
			break
		}
		c.Skip()
	}
	if !c.OK() {
		err = errMsgpack
	}
	return h, err
}

// read reads the metadata.
func (h *head) read(c *packed.Cursor, finalizer string) {
	for range c.MapLen() {
		switch string(c.Text()) {
		case "uid":
			h.uid = string(c.Text())
		case "resourceVersion":
			h.resourceVersion = string(c.Text())
		case "deletionTimestamp":
			h.deleting = !packed.IsNil(c.Value())
		case "annotations":
			for range c.MapLen() {
				if string(c.Text()) == PausedAnnotation {
					h.paused = Paused(string(c.Text()))
				} else {
					c.Skip()
				}
			}
		case "finalizers":
			for range c.ArrayLen() {
				name := c.Text()
				h.finalizer = h.finalizer || finalizer != "" && string(name) == finalizer
			}
		default:
			c.Skip()
		}
	}
}

var errMsgpack = errors.New("object: not the msgpack of a Kubernetes object")
