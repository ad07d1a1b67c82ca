// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/applier"
)

// WantLine waits for a line that contains all parts, and returns it.
func (c *Process) WantLine(parts ...string) string {
	c.T.Helper()
	limit := time.After(WaitLimit)
	for from, ended := 0, false; ; {
		lines, changed := c.linesFrom(from)
		for _, line := range lines {
			if ContainsAll(line, parts) {
				return line
			}
		}
		if from += len(lines); ended {
			c.T.Fatalf("ended without a line with %q", parts)
		}
		select {
		case <-changed:
		case <-c.Done:
			ended = true
		case <-limit:
			c.T.Fatalf("no line with %q", parts)
		}
	}
}

// linesFrom returns the lines after the first ones, and a channel that is closed when
// there is another one.
func (c *Process) linesFrom(first int) (lines []string, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[first:], c.changed
}

// Failures returns the lines of failed runs, except for those that users cause: they
// write and delete objects while runs go on.
func (c *Process) Failures() (failed []string) {
	c.T.Helper()
	for _, line := range c.LinesWith("reconcile failed") {
		if l := ParseLine(c.T, line); l.Msg == "reconcile failed" && !l.conflict() && !l.deleted() {
			failed = append(failed, line)
		}
	}
	return failed
}

// ContainsAll reports whether a line contains all parts.
func ContainsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}

// LogLine is one line of the JSON log.
type LogLine struct {
	Level, Msg, Object, Reason, Error, Action string
	Attempt                                   int
	DecidedBy                                 string `json:"decided_by"`
}

// LateUpdate is the error of the API server for an update of an object that was deleted
// since it was read, if updates may create objects of its kind, like Services.
const LateUpdate = "resourceVersion should not be set on objects to be created"

// conflict reports whether a run failed with a conflict, or has updated an object that
// was deleted meanwhile. Only conflicts are retried after ConflictDelay.
func (l *LogLine) conflict() bool {
	return strings.Contains(l.Error, LateUpdate) || l.DecidedBy == string(applier.DecidedByError) && l.Action == "requeue after "+applier.ConflictDelay.String()
}

// deleted reports whether a run failed because its object was deleted meanwhile.
func (l *LogLine) deleted() bool {
	_, name, _ := strings.Cut(l.Object, "/")
	return strings.Contains(l.Error, fmt.Sprintf("%q not found", cmp.Or(name, l.Object)))
}

// ParseLine reads a line of the JSON log.
func ParseLine(t *testing.T, line string) LogLine {
	t.Helper()
	var l LogLine
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return l
}

// Count returns how many lines contain all parts.
func (c *Process) Count(parts ...string) int { return len(c.LinesWith(parts...)) }

// LinesWith returns the lines that contain all parts.
func (c *Process) LinesWith(parts ...string) (with []string) {
	lines, _ := c.linesFrom(0)
	for _, line := range lines {
		if ContainsAll(line, parts) {
			with = append(with, line)
		}
	}
	return with
}
