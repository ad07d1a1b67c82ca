package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/runtime/shadow"
)

// Bounds of what wasmctl dev prints and remembers.
const (
	maxDiffLines  = 20
	maxDiffStates = 1000
)

// devDiff prints what runs write, and what has changed by it since the last write
// of the same object.
type devDiff struct {
	mu   sync.Mutex
	out  io.Writer                 // guarded by mu
	last map[string]map[string]any // objects as they were answered last, by name; guarded by mu
}

func newDevDiff(out io.Writer) *devDiff {
	return &devDiff{out: out, last: map[string]map[string]any{}}
}

// observe implements kubeapi.Observer.
func (d *devDiff) observe(ctx context.Context, e *kubeapi.Exchange) {
	if !e.Writes() {
		return
	}
	what := strings.TrimPrefix(string(e.Op), "api_") + " " + e.Kind.Name()
	if e.Subresource != "" {
		what += "/" + e.Subresource
	}
	of := ""
	if run := abi.RunFrom(ctx); run != nil {
		of = "  (for " + run.Key.String() + ")"
	}
	after := shownState(e, e.Answer)
	name := e.Kind.GVR().String() + " " + e.Key.String()
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	mark, note := "  ", ": nothing changed by it"
	switch before, known := d.last[name]; {
	case e.Err != nil:
		mark, note = "! ", ""
		lines = []string{"    " + e.Err.Error()}
	case e.Op == abi.OpAPIDelete:
		mark, note, after = "- ", "", nil
	case e.Created:
		mark, note = "+ ", ""
		lines = changedLines(nil, after)
	case !known: // the object is older than this process
		mark, note = "* ", ": what was there before is not known; sent:"
		lines = changedLines(nil, shownState(e, e.Sent))
	default:
		if lines = changedLines(before, after); len(lines) > 0 {
			mark, note = "~ ", ""
		}
	}
	d.remember(name, after, e.Err)
	_, _ = fmt.Fprintf(d.out, "%s%s %s%s%s\n%s", mark, what, e.Key, of, note, joined(lines)) // who reads it is gone
}

// remember keeps what an object has become; mu is held.
func (d *devDiff) remember(name string, after map[string]any, err error) {
	if err != nil {
		return
	}
	delete(d.last, name)
	if after == nil {
		return
	}
	for other := range d.last { // any will do
		if len(d.last) < maxDiffStates {
			break
		}
		delete(d.last, other)
	}
	d.last[name] = after
}

// shownState is an object without what the API server keeps for itself, and
// without the values of Secrets.
func shownState(e *kubeapi.Exchange, js []byte) map[string]any {
	var o map[string]any
	if err := utiljson.Unmarshal(js, &o); err != nil || o == nil {
		return nil
	}
	o = redact.Distinct(e.Kind.Group, e.Kind.Kind, o)
	if meta, ok := o["metadata"].(map[string]any); ok {
		for _, key := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"} {
			delete(meta, key)
		}
	}
	delete(o, "apiVersion")
	delete(o, "kind")
	return o
}

// changedLines says what has changed, a line each.
func changedLines(before, after map[string]any) (lines []string) {
	object := func(o map[string]any) *shadow.Run {
		return &shadow.Run{Writes: []shadow.Write{{Body: o}}}
	}
	found := shadow.Compare(object(withParts(before, after)), object(after), 0)
	for i := range found {
		found[i].Write = ""
		lines = append(lines, "    "+strings.Replace(differenceText(&found[i]), "  ", " ", 1))
	}
	if more := len(lines) - maxDiffLines; more > 0 {
		lines = append(lines[:maxDiffLines], fmt.Sprintf("    and %d more", more))
	}
	return lines
}

// withParts is an object with an empty map wherever another has a map that it
// does not have, so that what is new is told field by field.
func withParts(before, after map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, before)
	for key, value := range after {
		part, ok := value.(map[string]any)
		if old, is := out[key].(map[string]any); ok && (is || out[key] == nil) {
			out[key] = withParts(old, part)
		}
	}
	return out
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
