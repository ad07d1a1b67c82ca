// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// do plays one run of an object.
func do(t testing.TB, r *Recorder, id string, key abi.Key, object map[string]any, ops ...func()) {
	t.Helper()
	var bytes []byte
	if object != nil {
		bytes = pack(t, object)
	}
	r.Begin(&Running{ID: id, Key: key, Since: start, Object: bytes})
	for _, op := range ops {
		op()
	}
	r.End(key, &Run{ID: id, Started: start, Took: Duration(time.Millisecond)})
}

func TestRecorder_SaysWhatChangedSinceTheRunBefore(t *testing.T) {
	r, key := New(1<<20), abi.Key{Namespace: "shop", Name: "a"}
	object := func(version string, replicas int64) map[string]any {
		return map[string]any{"metadata": map[string]any{"resourceVersion": version}, "spec": replicas}
	}
	do(t, r, "1", key, object("1", 1))
	do(t, r, "2", key, object("2", 1))
	do(t, r, "3", key, object("3", 2))
	do(t, r, "4", key, nil)
	type reported struct {
		ID      string
		First   bool
		Changes []diff.Change
	}
	var got []reported
	for _, run := range r.Runs(key) {
		got = append(got, reported{run.ID, run.First, run.Changes})
	}
	want := []reported{{"4", false, nil}, {"3", false, []diff.Change{{Path: "spec", Before: "1", After: "2"}}}, {"2", false, nil}, {"1", true, nil}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A write is compared with the last known state, whichever run it came from.
func TestRecorder_SaysWhatAWriteChanged(t *testing.T) {
	r, key, child := New(1<<20), abi.Key{Name: "a"}, abi.Key{Name: "child"}
	state := func(v any) []byte { return pack(t, map[string]any{"kind": "ConfigMap", "data": v}) }
	op := func(effect Effect) Operation {
		return Operation{Name: "api_apply", Resource: "configmaps", Object: Object{child}, Effect: effect}
	}
	did := func(id string, o Operation, about States) func() { return func() { r.Did(id, o, about) } }
	do(t, r, "1", key, nil, did("1", op(Created), States{Sent: state("x"), After: state("x")}))
	do(t, r, "2", key, nil, did("2", op(Written), States{Sent: state("x"), After: state("x")}))
	dry := op(Written)
	dry.DryRun = true
	do(t, r, "3", key, nil, did("3", dry, States{After: state("never")}), did("3", op(Written), States{After: state("y")}))
	do(t, r, "4", key, nil, did("4", op(Deleted), States{}), did("4", op(Written), States{Sent: state("z"), After: state("z")}))
	do(t, r, "5", key, nil, did("5", op(Denied), States{}), did("5", op(Written), States{Before: state("other"), After: state("z")}))
	r.Did("nobody", op(Written), States{After: state("w")})
	do(t, r, "6", key, nil, did("6", op(Written), States{After: state("z")}))
	var got []string
	for _, run := range r.Runs(key) {
		for _, o := range run.Operations {
			got = append(got, fmt.Sprint(run.ID, " ", o.Effect, o.Changes))
		}
	}
	want := []string{
		"6 unchanged[]", "5 denied[]", `5 changed[{data "other" "z"}]`, "4 deleted[]", `4 written[{data  "z"}]`,
		`3 changed[{data "x" "never"}]`, `3 changed[{data "x" "y"}]`, "2 unchanged[]", `1 created[{data  "x"}]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A write is compared with the object that it replaced, and not with the module's last write: the newest
// known state that is not newer than the answer. A write that does not change the version has changed
// nothing, and one that changes only the version has an unknown effect.
func TestRecorder_ComparesWithTheReplacedObject(t *testing.T) {
	key, child := abi.Key{Name: "a"}, abi.Key{Name: "child"}
	state := func(version, v string) []byte {
		return pack(t, map[string]any{"data": v, "metadata": map[string]any{"resourceVersion": version}})
	}
	meta := func(version string, generation int64) []byte {
		m := map[string]any{"resourceVersion": version}
		if generation > 0 {
			m["generation"] = generation
		}
		return pack(t, map[string]any{"metadata": m})
	}
	of := func(generation int64, version, v string) []byte {
		return pack(t, map[string]any{"data": v, "metadata": map[string]any{"resourceVersion": version, "generation": generation}})
	}
	for _, tt := range []struct {
		name  string
		last  []byte // the module's last write
		about States
		dry   bool
		want  string
	}{
		{"a drift is corrected", state("5", "mine"), States{Before: state("7", "drift"), After: state("8", "mine")}, false, `changed[{data "drift" "mine"}]`},
		{"nothing is known of the last write", nil, States{Before: state("7", "drift"), After: state("8", "mine")}, false, `changed[{data "drift" "mine"}]`},
		{"the cache lags behind the last write", state("7", "mine"), States{Before: state("5", "old"), After: state("8", "next")}, false, `changed[{data "mine" "next"}]`},
		{"the same version", state("5", "other"), States{Before: state("7", "other"), After: state("7", "mine")}, false, "unchanged[]"},
		{"the same version, of metadata", state("5", "other"), States{Meta: meta("7", 0), After: state("7", "mine")}, false, "unchanged[]"},
		{"an unknown change is undone", state("5", "mine"), States{Meta: meta("7", 0), Sent: pack(t, map[string]any{"data": "mine"}), After: state("8", "mine")}, false, "written[]"},
		{"another version of metadata", state("5", "mine"), States{Meta: meta("7", 0), Sent: pack(t, map[string]any{"data": "next"}), After: state("8", "next")}, false, `written[{data  "next"}]`},
		{"the generation of the last write", of(3, "5", "mine"), States{Meta: meta("7", 3), After: of(3, "8", "next")}, false, `changed[{data "mine" "next"}]`},
		{"an unknown change of the generation is undone", of(3, "5", "mine"), States{Meta: meta("7", 4), Sent: pack(t, map[string]any{"data": "mine"}), After: of(5, "8", "mine")}, false, "written[]"},
		{"another generation", of(3, "5", "mine"), States{Meta: meta("7", 4), Sent: pack(t, map[string]any{"data": "next"}), After: of(5, "8", "next")}, false, `written[{data  "next"}]`},
		{"metadata of the last write", state("7", "mine"), States{Meta: meta("7", 0), After: state("8", "next")}, false, `changed[{data "mine" "next"}]`},
		{"only the version", state("5", "mine"), States{Before: state("5", "mine"), After: state("8", "mine")}, false, "written[]"},
		{"a dry run", nil, States{Before: state("5", "mine"), After: state("5", "next")}, true, `changed[{data "mine" "next"}]`},
		{"a dry run of nothing", nil, States{Before: state("5", "mine"), After: state("5", "mine")}, true, "unchanged[]"},
		{"a known state of before a restore", state("900", "mine"), States{Before: state("7", "drift"), After: state("8", "mine")}, false, `changed[{data "drift" "mine"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New(1 << 20)
			op := Operation{Name: "api_apply", Resource: "configmaps", Object: Object{child}, Effect: Written}
			if tt.last != nil {
				do(t, r, "1", key, nil, func() { r.Did("1", op, States{After: tt.last}) })
			}
			op.DryRun = tt.dry
			do(t, r, "2", key, nil, func() { r.Did("2", op, tt.about) })
			got := r.Runs(key)[0].Operations[0]
			if text := fmt.Sprint(got.Effect, got.Changes); text != tt.want {
				t.Errorf("%s, want %s", text, tt.want)
			}
		})
	}
}

// The memory is always bounded, and the most recent runs are retained.
func TestRecorder_IsBounded(t *testing.T) {
	const limit = 64 << 10
	r := New(limit)
	for i := range 2000 {
		key, id := abi.Key{Name: fmt.Sprint("object-", i)}, fmt.Sprint(i)
		do(t, r, id, key, map[string]any{"spec": fmt.Sprint(i)}, func() {
			for j := range 2 * MaxOperations {
				child := abi.Key{Name: fmt.Sprint("child-", j)}
				r.Did(id, Operation{Resource: "secrets", Object: Object{child}, Effect: Written}, States{After: pack(t, map[string]any{"v": id})})
			}
		})
		r.Hide(key, start, "generation")
		if n := r.Bytes(); n > limit {
			t.Fatalf("%d bytes after %d objects, want at most %d", n, i, limit)
		}
	}
	last := r.Runs(abi.Key{Name: "object-1999"})
	if len(last) != 1 || len(last[0].Operations) != MaxOperations || last[0].MoreOperations != MaxOperations {
		t.Errorf("%+v", last)
	}
	if runs := r.Runs(abi.Key{Name: "object-0"}); len(runs) != 0 {
		t.Errorf("the oldest is kept: %+v", runs)
	}
	if len(r.hidden) > maxHidden {
		t.Errorf("%d hidden", len(r.hidden))
	}
	for i := range 3 * MaxRuns {
		do(t, r, fmt.Sprint("again-", i), abi.Key{Name: "one"}, nil)
	}
	if runs := r.Runs(abi.Key{Name: "one"}); len(runs) != MaxRuns || runs[0].ID != "again-23" || runs[MaxRuns-1].ID != "again-16" {
		t.Errorf("%+v", runs)
	}
	size := 0
	for o := r.objects.ends.next; o != &r.objects.ends; o = o.next {
		want := objectSize + len(o.key.Name)
		for i := range o.value.runs {
			want += o.value.runs[i].bytes()
		}
		if o.size != want {
			t.Errorf("%s: %d bytes are counted, want %d", o.key, o.size, want)
		}
		size += o.size
	}
	if size != r.objects.size {
		t.Errorf("%d bytes in all, want %d", r.objects.size, size)
	}
}

func TestRecorder_WithoutMemoryKnowsWhatRunsAndFailed(t *testing.T) {
	r, key := New(0), abi.Key{Name: "a"}
	r.Begin(&Running{ID: "1", Key: key, Since: start})
	if running := r.Running(); len(running) != 1 || running[0].Key != key {
		t.Errorf("%+v", running)
	}
	r.End(key, &Run{ID: "1", Ending: Ending{Result: ResultFailed, Kind: "trap"}})
	if k, run, ok := r.LastFailure(); !ok || k != key || run.Kind != "trap" || len(r.Runs(key)) != 0 || len(r.Running()) != 0 || r.Bytes() != 0 {
		t.Errorf("%v %+v %v, %d bytes", k, run, ok, r.Bytes())
	}
}

func TestRecorder_HiddenEventsAreSinceTheLastRun(t *testing.T) {
	r, key := New(1<<20), abi.Key{Name: "a"}
	r.Hide(key, start, "labels")
	r.Hide(key, start.Add(time.Second), "generation")
	if got := r.Hidden(key); got != (Hidden{2, start.Add(time.Second), "generation"}) {
		t.Errorf("%+v", got)
	}
	do(t, r, "1", key, nil)
	if got := r.Hidden(key); got != (Hidden{}) {
		t.Errorf("after a run: %+v", got)
	}
}

// Recent runs count more than older ones.
func TestRecorder_BusiestFades(t *testing.T) {
	r := New(1 << 20)
	run := func(name string, at, took time.Duration, failed bool) {
		result := ResultSucceeded
		if failed {
			result = ResultFailed
		}
		r.End(abi.Key{Name: name}, &Run{Started: start.Add(at), Took: Duration(took), Fuel: 60, Ending: Ending{Result: result}, Cost: Cost{Guest: took / 5, Host: took / 2, Requests: 2, Answers: 1000}})
	}
	for i := range 60 {
		run("much", time.Duration(i)*time.Second, 500*time.Millisecond, i%2 == 0)
	}
	run("little", 59*time.Second, time.Millisecond, false)
	total, busiest := r.Busiest(start.Add(time.Minute), 1)
	if len(busiest) != 1 || busiest[0].Key.Name != "much" {
		t.Fatalf("%+v", busiest)
	}
	// 60 runs a minute for as long as the average reaches: 1-1/e of one a second.
	if l := busiest[0].Load; l.Runs < 0.6 || l.Runs > 0.66 || l.Busy < 0.3 || l.Busy > 0.33 || l.Errors < 0.3 || l.Errors > 0.33 || l.Fuel < 36 || l.Fuel > 40 {
		t.Errorf("%+v", l)
	}
	if l := busiest[0].Load; math.Abs(l.Guest-l.Busy/5) > 1e-9 || math.Abs(l.Host-l.Busy/2) > 1e-9 || math.Abs(l.Requests-2*l.Runs) > 1e-9 || math.Abs(l.Answers-1000*l.Runs) > 1e-6 {
		t.Errorf("%+v", l)
	}
	r.OutsideRuns(start.Add(time.Minute), time.Second)
	if got, want := r.Cost(), (Cost{7*time.Second + 200*time.Microsecond, 15*time.Second + 500*time.Microsecond, 122, 61000}); got != want {
		t.Errorf("all runs cost %+v, want %+v", got, want)
	}
	if total.Runs <= busiest[0].Load.Runs {
		t.Errorf("all of it is %+v", total)
	}
	if later, _ := r.Busiest(start.Add(time.Hour), 1); later.Runs > 1e-9 {
		t.Errorf("after an hour: %+v", later)
	}
}

func TestHammer_Recorder(t *testing.T) {
	r := New(32 << 10)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				key, id := abi.Key{Name: fmt.Sprint(g, "-", i%7)}, fmt.Sprint(g, "/", i)
				do(t, r, id, key, map[string]any{"i": int64(i)}, func() {
					r.Did(id, Operation{Resource: "x", Object: Object{abi.Key{Name: "shared"}}, Effect: Written}, States{After: pack(t, map[string]any{"i": int64(i)})})
				})
				r.Hide(key, start, "labels")
				r.Runs(key)
				r.Running()
				r.Busiest(start, 3)
				r.LastFailure()
			}
		})
	}
	wg.Wait()
	if n := len(r.Running()); n != 0 {
		t.Errorf("%d still run", n)
	}
	if got, _ := r.Busiest(start, 0); got.Runs == 0 {
		t.Error("nothing was counted")
	}
}

// BenchmarkRecorder measures the cost of the history for a run that does nothing.
func BenchmarkRecorder(b *testing.B) {
	r, object := New(1<<20), pack(b, map[string]any{"spec": make([]any, 1000)})
	keys := make([]abi.Key, 1000)
	for i := range keys {
		keys[i] = abi.Key{Namespace: "default", Name: fmt.Sprint("object-", i)}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key := keys[i%len(keys)]
		r.Begin(&Running{ID: "0123456789ab", Key: key, Since: start, Object: object})
		r.End(key, &Run{ID: "0123456789ab", Started: start, Took: Duration(time.Millisecond)})
		i++
	}
}

// TestRecorder_KeepsTheLastOfSkippedRuns: skipped runs do not displace runs that called the
// guest.
func TestRecorder_KeepsTheLastOfSkippedRuns(t *testing.T) {
	r, key := New(1<<20), abi.Key{Namespace: "shop", Name: "a"}
	skip := func(at int) { r.End(key, &Run{Started: start.Add(time.Duration(at)), Ending: Ending{NoChange: true}}) }
	do(t, r, "1", key, nil)
	for at := range 2 * MaxRuns {
		skip(at)
	}
	do(t, r, "2", key, nil)
	skip(100)
	var got []string
	for _, run := range r.Runs(key) {
		got = append(got, fmt.Sprintf("%s %v %d", run.ID, run.NoChange, run.Started.Sub(start).Nanoseconds()))
	}
	if want := []string{" true 100", "2 false 0", fmt.Sprint(" true ", 2*MaxRuns-1), "1 false 0"}; !cmp.Equal(want, got) {
		t.Errorf("runs are %q, want %q", got, want)
	}
}
