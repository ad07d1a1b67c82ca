// Package ledger is what replicas and restarts share of the modules of one
// controller: which one was live last, and which ones were rolled back. An Entry
// is a value, which the leader writes as text: to an annotation of the Lease of
// its election, or to a file (Dir).
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFailed bounds how many modules that were rolled back are remembered, maxReason
// the bytes of why: annotations have 256 KiB together.
const (
	maxFailed = 10
	maxReason = 1 << 10
)

// Notes keep a text for each key. A key that was not set has the empty one.
type Notes interface {
	Note(ctx context.Context, key string) (string, error)
	SetNote(ctx context.Context, key, value string) error
}

// Key is where the entry of a controller is noted.
func Key(controller string) string { return "modules.wasmctl.dev/" + controller }

// Entry is what is known. It is not changed: each change makes another.
type Entry struct {
	// Live is the digest of the module that was live last and not on probation.
	Live string `json:"live,omitempty"`
	// Failed were rolled back, the last one last.
	Failed []Failure `json:"failed,omitempty"`
}

// Failure is a module that was rolled back.
type Failure struct {
	Digest string    `json:"digest"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// String returns it for people.
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

// Proven returns the entry after a module has passed that was tried since a time: it
// is live, and no longer one that failed, unless it has failed at another replica since.
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

// Failure returns how a module failed, if it did.
func (e Entry) Failure(digest string) (f Failure, ok bool) {
	i := slices.IndexFunc(e.Failed, func(f Failure) bool { return f.Digest == digest })
	if i < 0 {
		return f, false
	}
	return e.Failed[i], true
}
