// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

const object = `
    object: {apiVersion: x.dev/v1, kind: X, metadata: {name: a, namespace: d}}`

func TestParse_SaysWhereAndWhat(t *testing.T) {
	for name, tc := range map[string]struct{ text, message string }{
		"a key at the top":     {"case:\n  - name: a", `line 1: case: unknown key; did you mean cases?`},
		"a key of a case":      {"cases:\n  - name: a\n    clutser: []", `line 3: clutser: unknown key; did you mean cluster?`},
		"a key of an answer":   {"cases:\n  - name: a\n    answers:\n      - {to: x, cod: 409}", `line 4: cod: unknown key; did you mean code?`},
		"nothing near":         {"cases:\n  - name: a\n    zzzzzzzz: 1", "want one of name, object"},
		"two at once":          {"cases:\n  - name: a\n    objet: 1\n    evnt: 2", `line 4: evnt: unknown key`},
		"behind a merge":       {"cases:\n  - &a\n    name: a\n    objet: 1\n  - {<<: *a, name: b}", `line 4: objet: unknown key`},
		"no name":              {"cases:\n  - key: a", "name is needed"},
		"nothing to run":       {"cases:\n  - name: a", "one of object, key, event, admission and convert is needed"},
		"two things to run":    {"cases:\n  - name: a\n    key: b" + object, "one of object, key, event, admission and convert is needed"},
		"the same name":        {"cases:\n  - {name: a, key: b}\n  - {name: a, key: b}", `line 3: there is another case "a"`},
		"a time":               {"cases:\n  - {name: a, key: b, time: yesterday}", "time: "},
		"an answer that is OK": {"cases:\n  - {name: a, key: b, answers: [{to: x, code: 200}]}", "200 is not a failure"},
		"an answer to nobody":  {"cases:\n  - {name: a, key: b, answers: [{code: 500}]}", "to is needed"},
		"a class":              {"cases:\n  - {name: a, key: b, error: {class: eternal}}", `"eternal" is none of`},
		"a cost":               {"cases:\n  - {name: a, key: b, cost: {fuel: much}}", `line 2: cost: "much": want a number such as`},
		"a part of a cost":     {"cost: {cpu: 1}\ncases: []", `line 1: cpu: unknown key`},
		"the cost of an event": {"cases:\n  - {name: a, event: {}, cost: {fuel: 1}}", "cost is for a run"},
		"a kind":               {"cases:\n  - {name: a, key: b, error: {kind: oops}}", `"oops" is none of`},
		"a list as an object":  {"cases:\n  - {name: a, object: [1]}", "want an object"},
		"an endless one":       {"cases:\n  - &a {name: a, object: {x: *a}}", `line 2: anchor "a" contains itself`},
		"no YAML":              {"cases: [", "yaml"},
		"nothing":              {"", "the file is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.message) || !strings.HasPrefix(err.Error(), "cases[f.yaml]: ") {
				t.Errorf("%v, want %q", err, tc.message)
			}
		})
	}
}

func TestParse_ObjectsAreAsJSONHasThem(t *testing.T) {
	f, err := Parse("f.yaml", []byte(`
cases:
  - name: a
    object: &base
      time: 2026-01-01T00:00:00Z
      n: 3
      f: 1.5
      "on": "yes"
      list: [1, {a: null}]
  - name: b
    object: {<<: *base, n: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Object{"time": "2026-01-01T00:00:00Z", "n": int64(3), "f": 1.5, "on": "yes", "list": []any{int64(1), map[string]any{"a": nil}}}
	if diff := cmp.Diff(want, f.Cases[0].Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want["n"] = int64(4)
	if diff := cmp.Diff(want, f.Cases[1].Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !f.Cases[0].at.Equal(DefaultTime) || f.Cases[1].Line != 10 {
		t.Errorf("%v, line %d", f.Cases[0].at, f.Cases[1].Line)
	}
}

// updateText has an expectation of each shape. Unchanged parts are marked.
const updateText = `# stays: a comment at the top

cases:
  # stays: before the first
  - name: wrong
    key: a # stays
    expect:
      action: requeue 5m
      # goes
      writes:
        - write: delete everything

  # stays: between

  - expect: {action: back-off}
    name: the first key
    key: b   # stays

  - name: has none
    key: c
    cluster:
      - apiVersion: v1
        kind: ConfigMap

    # stays: at the end of a case
  - name: right
    key: d
    expect: {action:   requeue   after 1h} # stays as it is
  - event: {}
    expect:
    - nonsense
    name: last`

func TestUpdate_ChangesNothingElse(t *testing.T) {
	text := strings.Replace(updateText, "\n    - nonsense", " {}", 1)
	f, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := []*Expect{
		{Action: awaitChange, Writes: []Write{{"create v1/ConfigMap d/a", "+ data.a: b\n"}}},
		{Action: "requeue after 1m0s"},
		{Action: awaitChange, Error: &Error{Class: "permanent", Message: "no: it is not"}},
		{Action: "requeue after 1h0m0s"},
		{Action: noRun, Reconciles: []string{"d/a"}},
	}
	var verdicts []Verdict
	for i, c := range f.Cases {
		verdicts = append(verdicts, Verdict{Case: c, Seen: seen[i], Diff: compare(c.Expect, seen[i])})
	}
	got, err := Update(f, verdicts, false)
	if err != nil {
		t.Fatal(err)
	}
	want := `# stays: a comment at the top

cases:
  # stays: before the first
  - name: wrong
    key: a # stays
    expect:
      writes:
        - write: create v1/ConfigMap d/a
          diff: |
            + data.a: b

  # stays: between

  - expect:
      action: requeue after 1m0s
    name: the first key
    key: b   # stays

  - name: has none
    key: c
    cluster:
      - apiVersion: v1
        kind: ConfigMap
    expect:
      error:
        class: permanent
        message: 'no: it is not'

    # stays: at the end of a case
  - name: right
    key: d
    expect: {action:   requeue   after 1h} # stays as it is
  - event: {}
    expect:
      reconciles:
        - d/a
    name: last`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := Parse("f.yaml", got)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range again.Cases {
		if diff := compare(c.Expect, seen[i]); diff != nil {
			t.Errorf("%s does not hold after its update: %q", c.Name, diff)
		}
	}
}

func TestUpdate_RefusesWhatItCannotEdit(t *testing.T) {
	f, err := Parse("f.yaml", []byte("cases: [{name: a, key: b}]"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Update(f, []Verdict{{Case: f.Cases[0], Seen: &Expect{Action: backOff}, Diff: []string{"- x"}}}, false)
	if err == nil || !strings.Contains(err.Error(), "each key on its own line") {
		t.Error(err)
	}
}

func TestCompare_LooksAtAllThatIsNotLeftOut(t *testing.T) {
	failed := &Expect{Action: "requeue after 1m0s", Error: &Error{Class: "transient", Reason: "Full", Message: "the disk is full"}}
	for name, tc := range map[string]struct {
		want, seen *Expect
		holds      bool
	}{
		"nothing and nothing":        {nil, &Expect{Action: awaitChange}, true},
		"a requeue that was not":     {&Expect{Action: "requeue 1m"}, &Expect{Action: awaitChange}, false},
		"another way to say it":      {&Expect{Action: "requeue  60s", Error: &Error{}}, failed, true},
		"a part of the message":      {&Expect{Action: "requeue after 60s", Error: &Error{Message: "disk"}}, failed, true},
		"another message":            {&Expect{Action: "requeue after 60s", Error: &Error{Message: "memory"}}, failed, false},
		"another class":              {&Expect{Action: "requeue after 60s", Error: &Error{Class: "permanent"}}, failed, false},
		"an error that was not":      {&Expect{Error: &Error{}}, &Expect{Action: awaitChange}, false},
		"an error that was":          {&Expect{Action: "requeue 1m"}, failed, false},
		"a write that was":           {nil, &Expect{Action: awaitChange, Writes: []Write{{"delete x", ""}}}, false},
		"an event that was":          {nil, &Expect{Action: awaitChange, Events: []string{"Normal A b"}}, false},
		"blanks in a diff":           {&Expect{Writes: []Write{{"update  x", "\n  + a: 1\n\n"}}}, &Expect{Action: awaitChange, Writes: []Write{{"update x", "+ a: 1\n"}}}, true},
		"no run, for any reason":     {&Expect{Action: "no run"}, &Expect{Action: noRun + ": it is paused"}, true},
		"no run is not to be silent": {nil, &Expect{Action: noRun + ": it is paused"}, false},
		"of an event":                {&Expect{Reconciles: []string{"a"}}, &Expect{Action: noRun, Reconciles: []string{"a"}}, true},
		"a status that is another":   {&Expect{Status: Object{"a": int64(1)}}, &Expect{Action: awaitChange, Status: Object{"a": int64(2)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := compare(tc.want, tc.seen); (diff == nil) != tc.holds {
				t.Errorf("holds: %t, want %t; %q", diff == nil, tc.holds, diff)
			}
		})
	}
}

func TestObjectDiff_NamesEachValueOnce(t *testing.T) {
	before := map[string]any{
		"apiVersion": "v1", "kind": "X",
		"metadata": map[string]any{"name": "a", "uid": "1", "labels": map[string]any{"app.io/name": "x"}, "finalizers": []any{"f"}},
		"spec":     map[string]any{"gone": "x", "same": int64(1), "list": []any{int64(1), int64(2)}},
	}
	after := map[string]any{
		"apiVersion": "v1", "kind": "X",
		"metadata": map[string]any{"name": "a", "uid": "2", "labels": map[string]any{"app.io/name": "y"}, "ownerReferences": []any{
			map[string]any{"kind": "Boss", "name": "b", "uid": "7", "controller": true},
		}},
		"spec": map[string]any{"same": int64(1), "list": []any{int64(1)}, "text": "a\nb", "empty": map[string]any{}, "yes": "true"},
	}
	want := `- metadata.finalizers[0]: f
- metadata.labels[app.io/name]: x
+ metadata.labels[app.io/name]: "y"
+ metadata.ownerReferences[0]: controller Boss b
+ spec.empty: {}
- spec.gone: x
- spec.list[1]: 2
+ spec.text: "a\nb"
+ spec.yes: "true"
`
	if diff := cmp.Diff(want, objectDiff(before, after)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := objectDiff(after, after); diff != "" {
		t.Errorf("of itself: %s", diff)
	}
}

func TestObjectDiff_TenComesAfterNine(t *testing.T) {
	var list []any
	for i := range 12 {
		list = append(list, int64(i))
	}
	lines := strings.Split(objectDiff(nil, map[string]any{"list": list}), "\n")
	if lines[2] != "+ list[2]: 2" || lines[11] != "+ list[11]: 11" {
		t.Errorf("%q", lines)
	}
}

func TestLineDiff_KeepsBothSides(t *testing.T) {
	got := lineDiff(strings.Fields("a b c d"), strings.Fields("a x c d e"))
	if diff := cmp.Diff([]string{"  a", "- b", "+ x", "  c", "  d", "+ e"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnswer_MatchesByWords(t *testing.T) {
	kind := memapi.GuessKind(memapi.Kind{}.GroupVersionKind, true)
	kind.Version, kind.Kind = "v1", "ConfigMap"
	r := &memapi.Request{Verb: "update", Kind: kind, Namespace: "d", Name: "a", Subresource: "status"}
	for to, want := range map[string]bool{
		"update": true, "*": true, "update v1/ConfigMap d/a status": true, "update * d/a": true, "* * * status": true,
		"patch": false, "update v1/ConfigMap d/b": false, "update v1/ConfigMap d/a status more": false, "update v1/ConfigMap d/a scale": false,
	} {
		if a := (&Answer{To: to}); a.matches(r) != want {
			t.Errorf("%q matches %s: %t", to, r, !want)
		}
	}
}

// Two ways to the same end differ in times, versions and made-up names only.
func TestNormalObjects_LeavesOutWhatDoesNotMatter(t *testing.T) {
	make := func(name string, at time.Time, generation, observed int64) []string {
		return normalObjects([]map[string]any{{
			"apiVersion": "v1", "kind": "X",
			"metadata": map[string]any{"name": name, "namespace": "d", "generateName": "x-", "generation": generation, "resourceVersion": name},
			"status":   map[string]any{"observedGeneration": observed, "at": at.Format(time.RFC3339), "n": int64(1)},
		}})
	}
	a, b := make("x-1", DefaultTime, 1, 1), make("x-2", DefaultTime.Add(time.Hour), 3, 3)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-one +other)\n%s", diff)
	}
	if old := make("x-1", DefaultTime, 2, 1); cmp.Equal(a, old) {
		t.Error("an older observed generation is not seen")
	}
	if len(a) != 5 {
		t.Errorf("%q", a)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(updateText))
	f.Add([]byte("cases:\n  - {name: a, key: b, expect: {writes: [{write: x}]}}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("cost: {fuel: 1k}\ncases:\n  - cost: {memory: 1Mi,\n           result: 3}\n    name: a\n    key: b\n"))
	f.Add([]byte("cases:\n  - &a\n    <<: *a\n    name: x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f.yaml", text)
		if err != nil {
			return
		}
		var verdicts []Verdict
		for _, c := range file.Cases {
			v := Verdict{Case: c, Seen: &Expect{Action: backOff}, Diff: []string{"-"}}
			if c.Event == nil {
				v.Cost = &Cost{Fuel: 12345, Requests: 2, Memory: 1 << 20, Result: 7}
			}
			verdicts = append(verdicts, v)
		}
		if _, err := Update(file, verdicts, true); err != nil && strings.Contains(err.Error(), "BUG") {
			t.Errorf("%v\n%s", err, text)
		}
	})
}

// TestRun_MetricsAreComparedWhereTheyAreExpected: a case without them has others.
func TestRun_MetricsAreComparedWhereTheyAreExpected(t *testing.T) {
	module, err := load.WithManifest(wasm.Reports, &abi.Manifest{Name: "x", For: &abi.Watch{Group: "x.dev", Version: "v1", Kind: "X"}})
	if err != nil {
		t.Fatal(err)
	}
	suite := &Suite{Wasm: module, Name: "x"}
	for expect, holds := range map[string]bool{
		"":                                    true,
		"expect: {metrics: [counter runs 1]}": false, // the gauge is missing
		"expect: {metrics: []}":               false,
		"expect: {metrics: [counter runs 1, gauge request_bytes SIZE]}": true,
		"expect: {metrics: [counter runs 2, gauge request_bytes SIZE]}": false,
	} {
		f, err := Parse("f.yaml", []byte("cases:\n  - name: a"+object+"\n    "+expect))
		if err != nil {
			t.Fatal(err)
		}
		v, err := suite.Run(t.Context(), f.Cases[0])
		if err != nil || len(v.Seen.Metrics) != 2 {
			t.Fatal(err, v.Seen)
		}
		if e := f.Cases[0].Expect; e != nil && len(e.Metrics) == 2 { // which version of the ABI writes how much does not matter here
			e.Metrics[1] = v.Seen.Metrics[1]
			v.Diff = compare(e, v.Seen)
		}
		if v.Failed() == holds {
			t.Errorf("%q: %v", expect, v.Diff)
		}
	}
}

// A status that is not as expected is shown value by value, as a declared status
// and as a write.
func TestCompare_StatusHasItsDiff(t *testing.T) {
	write := "update x.dev/v1/X d/a status"
	seen := &Expect{Action: awaitChange, Status: Object{"ready": int64(0), "phase": "New"}, Writes: []Write{{write, "+ status.ready: 0\n"}}}
	want := &Expect{Status: Object{"ready": int64(1), "phase": "New"}, Writes: []Write{{write, "+ status.ready: 1\n"}}}
	got := strings.Join(compare(want, seen), "\n")
	if diff := cmp.Diff(`  action: await change
  writes:
    - write: update x.dev/v1/X d/a status
      diff: |
-       + status.ready: 1
+       + status.ready: 0
  status:
    phase: New
-   ready: 1
+   ready: 0`, got); diff != "" {
		t.Error(diff)
	}
}
