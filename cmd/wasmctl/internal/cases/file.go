// SPDX-License-Identifier: Apache-2.0

// Package cases runs a module against tables of inputs and expected results. The module is the real
// one on the real host. Its requests go through the real client and the capability policy to an API
// server in memory (package memapi). The applier of production carries out the run. docs/testing.md
// describes the files.
//
// Parse reads a file, Suite.Run runs a case and returns a Verdict, Update writes the observed
// results into the file's text, and Suite.Chaos repeats a case with each of its requests failing in
// every way.
package cases

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host/strictyaml"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// File is a file of cases.
type File struct {
	// CRDs are files with CustomResourceDefinitions, relative to this one. Other kinds are guessed.
	CRDs []string `yaml:"crds"`
	// Controller is the controller to test, if the module has more than one.
	Controller string `yaml:"controller"`
	// Config are settings of all cases. Time is the time of all cases without their own.
	Config map[string]string `yaml:"config"`
	Time   string            `yaml:"time"`
	// Cost limits the cost of each case.
	Cost  Budget  `yaml:"cost"`
	Cases []*Case `yaml:"cases"`

	// Path is the path of the file, and Text is its content.
	Path string `yaml:"-"`
	Text []byte `yaml:"-"`

	kinds []memapi.Kind
}

// Case is one run and its expected result.
type Case struct {
	Name string `yaml:"name"`
	// Object is the object to reconcile, in the cluster and in the cache. Instead, Key can name an
	// object that is gone, Event can be a change that map and filter are asked about, Admission a
	// request for the webhooks, and Convert an object to convert.
	Object    Object      `yaml:"object"`
	Key       string      `yaml:"key"`
	Event     *Event      `yaml:"event"`
	Admission *Admission  `yaml:"admission"`
	Convert   *Conversion `yaml:"convert"`
	// Applied has objects that the module's earlier runs applied, and Cluster has all other
	// objects. The cache has the watched ones of both.
	Applied []Object `yaml:"applied"`
	Cluster []Object `yaml:"cluster"`
	// Cache has objects that differ between the cache and the cluster: they are older, or gone.
	// NotCached names objects, "v1/ConfigMap default/hello", that are not in the cache yet.
	Cache     []Object `yaml:"cache"`
	NotCached []string `yaml:"notCached"`
	// Answers are the failing answers of the API server.
	Answers []Answer `yaml:"answers"`
	// Config overrides settings of the file. Time is the time of the run.
	Config map[string]string `yaml:"config"`
	Time   string            `yaml:"time"`
	// Attempt is the number of the run since the last success; 0 means 1. Error is the error of the
	// run: the module does not run, and error_policy decides.
	Attempt int    `yaml:"attempt"`
	Error   *Error `yaml:"error"`

	// Cost overrides limits of the file.
	Cost   Budget  `yaml:"cost"`
	Expect *Expect `yaml:"expect"`

	// Line is the line at which the case begins.
	Line int `yaml:"-"`

	file *File
	at   time.Time
	node *yamlv3.Node
}

// Event is a change of a watched object.
type Event struct {
	// Type is Listed, Updated or Deleted. If empty, it is Updated.
	Type string `yaml:"type"`
	// Old and Object are the object before and after the change. Either may be missing.
	Old    Object `yaml:"old"`
	Object Object `yaml:"object"`
}

// Answer is a failing answer.
type Answer struct {
	// To selects requests: "create v1/ConfigMap default/hello", with * for any word. Nth selects
	// one of them, from 1; 0 selects all.
	To  string `yaml:"to"`
	Nth int    `yaml:"nth"`
	// Code is the HTTP status. Reason and Message are in its Status. Code 0 is a broken connection.
	Code    int    `yaml:"code"`
	Reason  string `yaml:"reason"`
	Message string `yaml:"message"`
	// Lost means that the request is carried out, and only its answer fails.
	Lost bool `yaml:"lost"`
}

// Expect is the expected result of a run. Nothing else may happen.
type Expect struct {
	// Action is "await change" (also if empty), "requeue after 5m", "back-off" for a requeue after
	// a time that the host chooses, or "no run".
	Action string `yaml:"action,omitempty"`
	// Error is the error of the run, or nil.
	Error *Error `yaml:"error,omitempty"`
	// Writes are the changes of the cluster, in order.
	Writes []Write `yaml:"writes,omitempty"`
	// Events have the form "Normal Reason note".
	Events []string `yaml:"events,omitempty"`
	// Status, if given, is the complete status of the object after the run.
	Status Object `yaml:"status,omitempty"`
	// Metrics, if given, are the metrics that the run reports: "counter renewed_total 1", counters
	// summed, sorted.
	Metrics []string `yaml:"metrics,omitempty"`
	// Reconciles are the objects that an Event causes to be reconciled, as "namespace/name".
	Reconciles []string `yaml:"reconciles,omitempty"`
	// Denied and Warnings are the verdict about an Admission.
	Denied   *Denied  `yaml:"denied,omitempty"`
	Warnings []string `yaml:"warnings,omitempty"`
	// Changes is what the webhooks or the conversion change in the object, in the form of Write.Diff.
	Changes string `yaml:"changes,omitempty"`
}

// Error is the error of a run. In an expectation, an empty field matches anything, and Message is a
// part of the text.
type Error struct {
	// Kind is error, trap, timeout, memory or output. If empty, it is error.
	Kind string `yaml:"kind,omitempty"`
	// Class is transient, permanent or conflict.
	Class   string `yaml:"class,omitempty"`
	Reason  string `yaml:"reason,omitempty"`
	Message string `yaml:"message,omitempty"`
}

// Write is one change of an object.
type Write struct {
	// Write is "create KIND NAME", "update KIND NAME [status]" or "delete KIND NAME".
	Write string `yaml:"write"`
	// Diff has a line for each added or removed value: "+ data.text: hello".
	Diff string `yaml:"diff,omitempty"`
}

// DefaultTime is the default time of runs. It is fixed, so that a module writes the same each time.
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
	docs, err := documents(text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		js, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return err
		}
		if string(js) == "null" {
			continue
		}
		kinds, err := memapi.ParseCRD(js)
		if err != nil {
			return err
		}
		f.kinds = append(f.kinds, kinds...)
	}
	return nil
}

// Parse reads the text of a file of cases. An error has the line. For an unknown key, it also has
// the nearest known one.
func Parse(path string, text []byte) (*File, error) {
	f := &File{Path: path, Text: text}
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
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

// number sets the position of each case, and checks it.
func (f *File) number(nodes *yamlv3.Node) error {
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

// check validates a case, and computes its time.
func (c *Case) check() error {
	given := 0
	for _, is := range []bool{c.Object != nil, c.Key != "", c.Event != nil, c.Admission != nil, c.Convert != nil} {
		if is {
			given++
		}
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("name is needed")
	case given != 1:
		return fmt.Errorf("one of object, key, event, admission and convert is needed")
	case c.Attempt < 0:
		return fmt.Errorf("attempt: %d is negative", c.Attempt)
	case c.Expect != nil && c.Expect.Reconciles != nil && c.Event == nil:
		return fmt.Errorf("expect.reconciles is for an event")
	case c.Object == nil && c.Key == "" && c.Cost != Budget{}:
		return fmt.Errorf("cost is for a run of object or key")
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
