// SPDX-License-Identifier: Apache-2.0

// Package ledger stores the state of modules that the replicas and restarts of one
// controller share: which module was live last, and which ones were rolled back. An Entry
// is a value. The leader writes it as text to an annotation of its election's Lease, or to
// a file (Dir).
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFailed bounds the number of modules that were rolled back and are remembered,
// maxReason the bytes of each reason: all annotations of an object may have 256 KiB
// together.
const (
	maxFailed = 10
	maxReason = 1 << 10
)

// Notes stores a text for each key. A key that was not set has the empty text.
type Notes interface {
	Note(ctx context.Context, key string) (string, error)
	SetNote(ctx context.Context, key, value string) error
}

// Key returns the key of a controller's entry.
func Key(controller string) string { return "modules.wasmctl.dev/" + controller }

// Entry is the shared state of one controller's modules. Its methods do not change it; they
// return a new Entry.
type Entry struct {
	// Live is the digest of the module that was live last and had passed its probation.
	Live string `json:"live,omitempty"`
	// Failed are the modules that were rolled back, the latest one last.
	Failed []Failure `json:"failed,omitempty"`
}

// Failure is a module that was rolled back.
type Failure struct {
	Digest string    `json:"digest"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// String describes the failure for people.
func (f Failure) String() string {
	return fmt.Sprintf("was rolled back at %s: %s", f.Time.UTC().Format(time.RFC3339), f.Reason)
}

// Read reads the entry of a controller.
func Read(ctx context.Context, notes Notes, controller string) (Entry, error) {
	var e Entry
	text, err := notes.Note(ctx, Key(controller))
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("ledger[%s]: %w", controller, err)
	}
	return e, nil
}

// Write replaces the entry of a controller.
func Write(ctx context.Context, notes Notes, controller string, e Entry) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = notes.SetNote(ctx, Key(controller), string(text))
	}
	if err != nil {
		return fmt.Errorf("ledger[%s]: %w", controller, err)
	}
	return nil
}

// Proven returns the entry after a module passed its probation, which began at since. The
// module becomes Live and is removed from Failed, unless it failed at another replica after
// since.
func (e Entry) Proven(digest string, since time.Time) Entry {
	if f, failed := e.Failure(digest); failed && f.Time.After(since) {
		return e
	}
	return Entry{digest, e.without(digest)}
}

// RolledBack returns the entry after a module was rolled back to another.
func (e Entry) RolledBack(f Failure, live string) Entry {
	f.Reason = strings.ToValidUTF8(f.Reason[:min(len(f.Reason), maxReason)], "")
	failed := append(e.without(f.Digest), f)
	return Entry{live, failed[max(0, len(failed)-maxFailed):]}
}

func (e Entry) without(digest string) []Failure {
	return slices.DeleteFunc(slices.Clone(e.Failed), func(f Failure) bool { return f.Digest == digest })
}

// Failure returns the failure of a module, if it failed.
func (e Entry) Failure(digest string) (f Failure, ok bool) {
	i := slices.IndexFunc(e.Failed, func(f Failure) bool { return f.Digest == digest })
	if i < 0 {
		return f, false
	}
	return e.Failed[i], true
}
