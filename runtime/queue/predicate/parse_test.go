// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func TestParse_ReadsTheGrammar(t *testing.T) {
	for _, c := range []struct {
		elements []string
		want     string
		ttl      time.Duration
	}{
		{[]string{"generation"}, "generation", time.Hour},
		{[]string{"generation", " labels "}, "any(generation, labels)", time.Hour},
		{[]string{"all( generation,labels )"}, "all(generation, labels)", time.Hour},
		{[]string{"any(all(a, b), func)"}, "", 0},
		{[]string{"any(all(finalizers, deletion), func)", "ttl=90s"}, "any(all(finalizers, deletion), func)", 90 * time.Second},
		{[]string{"ttl=never", "resourceVersion"}, "resourceVersion", 0},
		{[]string{"all(\n\tannotations\n)"}, "all(annotations)", time.Hour},
	} {
		f, err := predicate.Parse(c.elements, predicate.Options{})
		if c.want == "" {
			if err == nil {
				t.Errorf("%v: no error", c.elements)
			}
			continue
		}
		if err != nil || f.String() != c.want || f.TTL() != c.ttl {
			t.Errorf("%v: got %v, %v, %v; want %s, %v", c.elements, f, f.TTL(), err, c.want, c.ttl)
		}
	}
}

func TestParse_ErrorSaysWhatToWrite(t *testing.T) {
	deep := strings.Repeat("all(", 10) + "labels" + strings.Repeat(")", 10)
	for element, want := range map[string]string{
		"":                        "a predicate is missing: one of generation",
		"generations":             `did you mean "generation"?`,
		"resourceversion":         `did you mean "resourceVersion"?`,
		"lables":                  `did you mean "labels"?`,
		"al(labels)":              `did you mean "all"?`,
		"whatever":                `want one of generation, resourceVersion, labels, annotations, finalizers, deletion, func, or all(...)`,
		"all":                     "brackets are missing: write all(generation, labels)",
		"all()":                   "a predicate is missing",
		"all(labels":              "is not closed",
		"all(labels annotations)": "a comma is missing after labels",
		"all(labels,)":            "a predicate is missing",
		"labels)":                 `unexpected ")" after labels`,
		"labels, annotations":     `unexpected ", annotations" after labels`,
		"generation(2)":           "takes no arguments in brackets",
		"ttl":                     `"ttl=30m"`,
		"all(ttl=30m)":            `is not a predicate`,
		"ttl=":                    "want a duration",
		"ttl=30":                  "want a duration",
		"ttl=10ms":                "is less than 1s",
		"ttl=-1h":                 "is less than 1s",
		deep:                      "brackets nest deeper than 8",
		strings.Repeat("a", 2000): "is longer than 1024 bytes",
		"labels\x00":              "is not a predicate",
		"all(labels))":            `unexpected ")"`,
	} {
		_, err := predicate.Parse([]string{"labels", element}, predicate.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "predicates[1]") {
			t.Errorf("%q: got %v, want an error with %s", element, err, want)
		}
	}
	if _, err := predicate.Parse([]string{"ttl=1m", "ttl=2m"}, predicate.Options{}); err == nil {
		t.Error("ttl twice: no error")
	}
}

// FuzzParse: nothing panics, a parsed element has the same meaning after formatting and parsing it again, and a filter
// always lets a new object pass unless the guest decides.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"generation", "all(labels, any(func, deletion))", "ttl=30m", "all(", "any(,)", "))((", "labels,", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, element string) {
		filter, err := predicate.Parse([]string{element}, predicate.Options{})
		if err != nil || filter == nil {
			return
		}
		again, err := predicate.Parse([]string{filter.String(), "ttl=never"}, predicate.Options{})
		if err != nil {
			t.Fatalf("%q: written as %q, which is not read: %v", element, filter, err)
		}
		if diff := cmp.Diff(filter.String(), again.String()); diff != "" {
			t.Fatal(diff)
		}
		created := reflector.Event{Type: reflector.Applied, New: pack(t)}
		if got := filter.Check(time.Time{}, created); got == predicate.Hide || got == predicate.Ask && !filter.Asks() {
			t.Fatalf("%s: a new object: %s", filter, got)
		}
	})
}
