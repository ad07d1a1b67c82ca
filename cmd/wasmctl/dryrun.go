package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/pmezard/go-difflib/difflib"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/redact"
)

const (
	// maxDryRemembered bounds how many writes are known to have been printed.
	maxDryRemembered = 10_000
	// diffContext is how many lines that are the same stand around a change.
	diffContext = 3
)

// dryRunModes are the values of --dry-run.
var dryRunModes = []string{string(kubeapi.DryRunServer), string(kubeapi.DryRunClient)}

// dryRun prints the writes of a dry run as diffs against what is there.
type dryRun struct {
	secrets *redact.Values // hidden in what is printed

	mu      sync.Mutex
	out     io.Writer                    // guarded by mu
	printed map[string][sha256.Size]byte // what was printed last, by write; guarded by mu
}

func newDryRun(out io.Writer, secrets *redact.Values) *dryRun {
	return &dryRun{secrets: secrets, out: out, printed: map[string][sha256.Size]byte{}}
}

// observe implements kubeapi.Observer.
func (d *dryRun) observe(_ context.Context, e *kubeapi.Exchange) {
	var text string
	name := string(e.Op) + " " + e.Kind.GVR().String() + "/" + e.Subresource + " " + e.Key.String()
	switch {
	case !e.DryRun:
		return
	case e.Event != nil:
		ev := e.Event
		name += ev.Regarding.String() + ev.Type + ev.Reason
		text = d.secrets.Text(fmt.Sprintf("# event about %s %s: %s %s: %s\n", ev.Regarding.Kind, ev.Regarding.Name, ev.Type, ev.Reason, ev.Note))
	case !e.Writes():
		return
	case e.Err != nil:
		text = d.secrets.Text(fmt.Sprintf("# %s would fail: %v\n", writeText(e), e.Err))
	default:
		text = d.diff(e)
	}
	sum := sha256.Sum256([]byte(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, ok := d.printed[name]; ok && last == sum {
		return
	}
	if len(d.printed) >= maxDryRemembered {
		clear(d.printed)
	}
	d.printed[name] = sum
	_, _ = io.WriteString(d.out, text) // who reads it is gone
}

// writeText names a write: "apply configmaps shop/a".
func writeText(e *kubeapi.Exchange) string {
	what := strings.TrimPrefix(string(e.Op), "api_") + " " + e.Kind.Name()
	if e.Subresource != "" {
		what += "/" + e.Subresource
	}
	return what + " " + e.Key.String()
}

// diff is a write as a unified diff of YAML.
func (d *dryRun) diff(e *kubeapi.Exchange) string {
	before, after := d.state(e, e.Before), d.state(e, e.Answer)
	if e.Op == "api_delete" {
		after = ""
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(before), B: lines(after), FromFile: "now", ToFile: "then", Context: diffContext,
	})
	switch {
	case err != nil:
		return fmt.Sprintf("# %s: %v\n", writeText(e), err)
	case text == "":
		return fmt.Sprintf("# %s: changes nothing\n", writeText(e))
	}
	return "# " + writeText(e) + "\n" + text
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return difflib.SplitLines(strings.TrimSuffix(text, "\n"))
}

// state is an object as YAML, without what the API server keeps for itself and
// without the values of Secrets, wherever the module has copied them.
func (d *dryRun) state(e *kubeapi.Exchange, js []byte) string {
	if len(bytes.TrimSpace(js)) == 0 {
		return ""
	}
	var o map[string]any
	if err := utiljson.Unmarshal(js, &o); err != nil || o == nil {
		return ""
	}
	o, _ = d.secrets.DistinctAny(redact.Distinct(e.Kind.Group, e.Kind.Kind, o)).(map[string]any)
	if meta, ok := o["metadata"].(map[string]any); ok {
		for _, key := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
			delete(meta, key)
		}
	}
	b, err := yaml.Marshal(o)
	if err != nil {
		return ""
	}
	return string(b)
}
