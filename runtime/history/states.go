// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"slices"

	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// States are the packed states of the object of an operation, without values that must be
// hidden. They must not change. Each may be nil.
type States struct {
	// Before is the state that a write replaced. Meta is the metadata of that state if nothing
	// else of it is known, and Earlier is then a state that is known from before it.
	Before, Meta, Earlier []byte
	// Sent is the request, and After the complete object in the answer.
	Sent, After []byte
}

// Settle computes the changes of a Written or a Created operation, and determines its exact
// effect.
func (op *Operation) Settle(about States, bounds diff.Bounds) {
	from, to := about.Before, about.After
	was, is := about.version(), versionOf(to)
	switch {
	case op.Effect == Created:
		from, to = nil, about.Sent
	case op.Effect != Written:
		return
	case was != "" && was == is && !op.DryRun: // a dry run returns the version that exists
		op.Effect = Unchanged
		return
	case to != nil && about.Earlier != nil && sameContent(about.Earlier, to, bounds):
		return // a change in between was undone
	case from == nil || to == nil:
		from, to = nil, about.Sent
	}
	if to == nil {
		return
	}
	changes, err := diff.Packed(from, to, bounds)
	switch {
	case err != nil:
	case from == nil:
		op.Changes = slices.DeleteFunc(changes, func(c diff.Change) bool { return naming[c.Path] })
	case len(changes) > 0:
		op.Effect, op.Changes = Changed, changes
	case op.DryRun || was == "" || is == "":
		op.Effect = Unchanged
	}
}

// version returns the resourceVersion before the write, or "".
func (s *States) version() string {
	if s.Before == nil {
		return versionOf(s.Meta)
	}
	return versionOf(s.Before)
}

// improve replaces the state before a write by a known one that is newer. A known state that is newer
// than the answer is that of an object which no longer exists. If only the metadata of the replaced
// state is known, an older state has the same content if it has the same generation.
func (s *States) improve(known []byte) {
	version, was := versionOf(known), s.version()
	switch {
	case reflector.Older(versionOf(s.After), version):
	case reflector.Older(was, version), s.Before == nil && (was == "" || was == version || sameGeneration(known, s.Meta)):
		s.Before = known
	case s.Before == nil:
		s.Earlier = known
	}
}

// sameContent reports whether two states of an object differ at most in their version and generation.
func sameContent(a, b []byte, bounds diff.Bounds) bool {
	changes, err := diff.Packed(a, b, bounds)
	return err == nil && !slices.ContainsFunc(changes, func(c diff.Change) bool { return c.Path != "metadata.generation" })
}

// sameGeneration reports whether two states of an object have the same generation. Some kinds have none.
func sameGeneration(a, b []byte) bool {
	generation := packed.Find(packed.Find(a, "metadata"), "generation")
	return generation != nil && bytes.Equal(generation, packed.Find(packed.Find(b, "metadata"), "generation"))
}

// Newer reports whether a packed state of an object is newer than another one, which may be nil.
func Newer(state, other []byte) bool {
	return other == nil || reflector.Older(versionOf(other), versionOf(state))
}

// versionOf returns the resourceVersion of a packed state, or "".
func versionOf(state []byte) string {
	c := packed.At(packed.Find(packed.Find(state, "metadata"), "resourceVersion"))
	return string(c.Text())
}

// naming are the fields of a new object that repeat its identity.
var naming = map[string]bool{"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true}
