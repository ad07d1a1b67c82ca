// Package cases runs a module against tables: what there is, and what the module
// is to do. The module is the real one on the real host, its requests go through
// the real client and the capability policy to an API server in memory (package
// memapi), and the run is carried out by the applier that carries it out in
// production. docs/testing.md describes the files.
//
// Parse reads a file, Suite.Run runs a case and returns a Verdict, Update writes
// what was seen into the file's text, and Suite.Chaos runs a case again with each
// of its requests failing in every way.
package cases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/wasmctl/wasmctl/host/strictyaml"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// File is a file of cases.
type File struct {
	// CRDs are files with CustomResourceDefinitions, relative to this one. Kinds
	// that are in none of them are guessed.
	CRDs []string `yaml:"crds"`
	// Controller is which one the module is, where it has several.
	Controller string `yaml:"controller"`
	// Config are settings of all cases, Time is the time of all that have none.
	Config map[string]string `yaml:"config"`
	Time   string            `yaml:"time"`
	// Cost is what each case may cost.
	Cost  Budget  `yaml:"cost"`
	Cases []*Case `yaml:"cases"`

	// Path is where the file is, and Text what is in it.
	Path string `yaml:"-"`
	Text []byte `yaml:"-"`

	kinds []memapi.Kind
}

// Case is one run, and what it is to do.
type Case struct {
	Name string `yaml:"name"`
	// Object is the object that is reconciled, as it is in the cluster and in the
	// cache. In place of it Key names one that is gone, and Event a change of
	// which map and filter are asked.
	Object Object `yaml:"object"`
	Key    string `yaml:"key"`
	Event  *Event `yaml:"event"`
	// Applied has objects that the module's earlier runs have applied, Cluster all
	// others that there are. The cache has those of them that the module watches.
	Applied []Object `yaml:"applied"`
	Cluster []Object `yaml:"cluster"`
	// Cache has objects that are otherwise in the cache than in the cluster: older,
	// or gone. NotCached names objects, "v1/ConfigMap default/hello", that the
	// cache does not have yet.
	Cache     []Object `yaml:"cache"`
	NotCached []string `yaml:"notCached"`
	// Answers are those of the API server that go wrong.
	Answers []Answer `yaml:"answers"`
	// Config are settings over those of the file, Time is when the run is.
	Config map[string]string `yaml:"config"`
	Time   string            `yaml:"time"`
	// Attempt is the number of the run since the last good one; 0 is 1. Error is
	// what the run fails with in place of being run: error_policy decides then.
	Attempt int    `yaml:"attempt"`
	Error   *Error `yaml:"error"`

	// Cost is what the run may cost, over what the file has.
	Cost   Budget  `yaml:"cost"`
	Expect *Expect `yaml:"expect"`

	// Line is where the case begins.
	Line int `yaml:"-"`

	file *File
	at   time.Time
	node *yaml.Node
}

// Event is a change of a watched object.
type Event struct {
	// Type is Listed, Updated or Deleted; empty is Updated.
	Type string `yaml:"type"`
	// Old and Object are the object before and after; either may be missing.
	Old    Object `yaml:"old"`
	Object Object `yaml:"object"`
}

// Answer is an answer that goes wrong.
type Answer struct {
	// To says which requests: "create v1/ConfigMap default/hello", with * for any
	// word. Nth is which of them, from 1; 0 is all.
	To  string `yaml:"to"`
	Nth int    `yaml:"nth"`
	// Code is the HTTP status, Reason and Message are those of its Status. Code 0
	// is a connection that breaks.
	Code    int    `yaml:"code"`
	Reason  string `yaml:"reason"`
	Message string `yaml:"message"`
	// Lost says that the request is carried out, and that only the answer is this.
	Lost bool `yaml:"lost"`
}

// Expect is what a run is to do. Everything else must not happen.
type Expect struct {
	// Action is "await change" (which an empty one is too), "requeue after 5m",
	// "back-off" for a requeue after a time that the host chooses, or "no run".
	Action string `yaml:"action,omitempty"`
	// Error is what the run fails with; nil if it does not.
	Error *Error `yaml:"error,omitempty"`
	// Writes are the changes of the cluster, in their order.
	Writes []Write `yaml:"writes,omitempty"`
	// Events are "Normal Reason note".
	Events []string `yaml:"events,omitempty"`
	// Status, if given, is the whole status of the object after the run.
	Status Object `yaml:"status,omitempty"`
	// Metrics, if given, are those that the run reports: "counter renewed_total 1",
	// counters summed, sorted.
	Metrics []string `yaml:"metrics,omitempty"`
	// Reconciles are the objects that an Event causes to be reconciled:
	// "namespace/name".
	Reconciles []string `yaml:"reconciles,omitempty"`
}

// Error is why a run fails. Where it is expected, an empty field is not looked
// at, and Message is a part of the real one.
type Error struct {
	// Kind is error, trap, timeout, memory or output; empty is error.
	Kind string `yaml:"kind,omitempty"`
	// Class is transient, permanent or conflict.
	Class   string `yaml:"class,omitempty"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

// Write is one change of an object.
type Write struct {
	// Write is "create KIND NAME", "update KIND NAME [status]" or "delete KIND
	// NAME".
	Write string `yaml:"write"`
	// Diff has a line for each value that is new or gone: "+ data.text: hello".
	Diff string `yaml:"diff,omitempty"`
}

// DefaultTime is the default time of runs: fixed, so that a module writes the
// same each time.
var DefaultTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Read reads a file of cases and the CustomResourceDefinitions that it names.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	f, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	for _, name := range f.CRDs {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cases[%s]: crds: %w", path, err)
		}
		if err := f.AddCRDs(b); err != nil {
			return nil, fmt.Errorf("cases[%s]: crds: %s: %w", path, name, err)
		}
	}
	return f, nil
}

// AddCRDs adds the kinds of CustomResourceDefinitions, given as YAML documents.
func (f *File) AddCRDs(text []byte) error {
	docs := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(text))
	for {
		var js json.RawMessage
		switch err := docs.Decode(&js); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(js) == 0 || string(js) == "null":
			continue
		}
		kinds, err := memapi.ParseCRD(js)
		if err != nil {
			return err
		}
		f.kinds = append(f.kinds, kinds...)
	}
}

// Parse reads the text of a file of cases. An error names the line; for a key
// that is not known, also the nearest one that is.
func Parse(path string, text []byte) (*File, error) {
	f := &File{Path: path, Text: text}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("cases[%s]: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("cases[%s]: the file is empty", path)
	}
	if err := bounded(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("cases[%s]: %w", path, err)
	}
	if err := checkKeys(doc.Content[0], reflect.TypeFor[File]()); err != nil {
		return nil, fmt.Errorf("cases[%s]: %w", path, err)
	}
	if err := doc.Decode(f); err != nil {
		return nil, fmt.Errorf("cases[%s]: %w", path, err)
	}
	nodes := child(doc.Content[0], "cases")
	if len(f.Cases) == 0 || nodes == nil || len(nodes.Content) != len(f.Cases) || slices.Contains(f.Cases, nil) {
		return nil, fmt.Errorf("cases[%s]: cases: want a list of cases", path)
	}
	if err := f.number(nodes); err != nil {
		return nil, err
	}
	return f, nil
}

// number tells the cases where they stand, and checks them.
func (f *File) number(nodes *yaml.Node) error {
	names := map[string]bool{}
	for i, c := range f.Cases {
		c.file, c.node = f, strictyaml.Resolve(nodes.Content[i])
		c.Line = nodes.Content[i].Line
		if err := c.check(); err != nil {
			return fmt.Errorf("cases[%s]: line %d: case %q: %w", f.Path, c.Line, c.Name, err)
		}
		if names[c.Name] {
			return fmt.Errorf("cases[%s]: line %d: there is another case %q", f.Path, c.Line, c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// check says what is wrong with a case, and works out its time.
func (c *Case) check() error {
	given := 0
	for _, is := range []bool{c.Object != nil, c.Key != "", c.Event != nil} {
		if is {
			given++
		}
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("name is needed")
	case given != 1:
		return fmt.Errorf("one of object, key and event is needed")
	case c.Attempt < 0:
		return fmt.Errorf("attempt: %d is negative", c.Attempt)
	case c.Expect != nil && c.Expect.Reconciles != nil && c.Event == nil:
		return fmt.Errorf("expect.reconciles is for an event")
	case c.Event != nil && c.Cost != Budget{}:
		return fmt.Errorf("cost is for a run, and an event is none")
	}
	c.at = DefaultTime
	if text := cmp.Or(c.Time, c.file.Time); text != "" {
		var err error
		if c.at, err = time.Parse(time.RFC3339, text); err != nil {
			return fmt.Errorf("time: %w", err)
		}
	}
	for _, a := range c.Answers {
		if err := a.check(); err != nil {
			return fmt.Errorf("answers: %w", err)
		}
	}
	return c.Error.check()
}
