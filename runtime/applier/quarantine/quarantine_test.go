// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

var (
	start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	web   = abi.Key{Namespace: "default", Name: "web"}
	trap  = Failure{Kind: abi.FailureTrap, Text: "unreachable"}
	same  = Subject{Object: 1, Module: 1}
)

func TestTable_QuarantinesAfterSoManyInARow(t *testing.T) {
	table := New(Config{})
	for i := 1; i < DefaultAfter; i++ {
		if wait, entered := table.Failed(web, same, trap, start, 1); wait != 0 || entered {
			t.Fatalf("after %d: %v, %v", i, wait, entered)
		}
		if _, ok := table.Get(web); ok || table.Quarantined() != 0 {
			t.Fatalf("after %d: quarantined", i)
		}
	}
	wait, entered := table.Failed(web, same, trap, start, 1)
	if wait != DefaultInitial || !entered || table.Quarantined() != 1 {
		t.Errorf("after %d: %v, %v, %d", DefaultAfter, wait, entered, table.Quarantined())
	}
	want := State{Key: web, Since: start, Until: start.Add(DefaultInitial), Runs: DefaultAfter, Failure: trap}
	if got, ok := table.Get(web); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
}

// The quarantine time doubles up to the maximum, and the random part reduces it by at most a fifth.
func TestTable_BacksOffToABound(t *testing.T) {
	for _, random := range []float64{0, 0.5, 0.999} {
		table := New(Config{After: 1, Initial: time.Second, Max: 5 * time.Second})
		now := start
		for i, full := range []time.Duration{1, 2, 4, 5, 5, 5} {
			full *= time.Second
			wait, entered := table.Failed(web, same, trap, now, random)
			if want := time.Duration(float64(full) * (0.8 + 0.2*random)); wait != want || entered != (i == 0) {
				t.Errorf("run %d: %v, %v, want %v", i+1, wait, entered, want)
			}
			now = now.Add(wait)
		}
	}
	table := New(Config{})
	for range 5000 { // a power that overflows
		if wait, _ := table.Failed(web, same, trap, start, 1); wait > DefaultMax || wait < 0 {
			t.Fatalf("left alone for %v", wait)
		}
	}
}

func TestTable_ChecksUntilTheTimeIsOverOrSomethingChanges(t *testing.T) {
	for _, tc := range []struct {
		name  string
		s     Subject
		now   time.Time
		wait  time.Duration
		freed bool
	}{
		{"at once", same, start, time.Minute, false},
		{"later", same, start.Add(45 * time.Second), 15 * time.Second, false},
		{"when the time is over", same, start.Add(time.Minute), 0, false},
		{"another object", Subject{Object: 2, Module: 1}, start, 0, true},
		{"another module", Subject{Object: 1, Module: 2}, start, 0, true},
	} {
		table := New(Config{After: 1})
		table.Failed(web, same, trap, start, 1)
		wait, freed := table.Check(web, tc.s, tc.now)
		if wait != tc.wait || freed != tc.freed || table.Known(web) == tc.freed {
			t.Errorf("%s: %v, %v", tc.name, wait, freed)
		}
	}
	if wait, freed := New(Config{}).Check(web, same, start); wait != 0 || freed {
		t.Errorf("an unknown object: %v, %v", wait, freed)
	}
}

// A suspect whose object changes starts from the first run.
func TestTable_ChangeStartsAgain(t *testing.T) {
	table := New(Config{After: 2})
	table.Failed(web, same, trap, start, 1)
	if _, entered := table.Failed(web, Subject{Object: 2, Module: 1}, trap, start, 1); entered {
		t.Error("runs of the object before are counted")
	}
	if _, entered := table.Failed(web, Subject{Object: 2, Module: 1}, trap, start, 1); !entered {
		t.Error("not quarantined")
	}
}

func TestTable_OffKeepsNothing(t *testing.T) {
	table := New(Config{After: -1})
	for range 100 {
		if wait, entered := table.Failed(web, same, trap, start, 1); wait != 0 || entered || table.Len() != 0 {
			t.Fatalf("%v, %v, %d", wait, entered, table.Len())
		}
	}
}

func TestTable_ListHasTheOldestFirstAndIsBounded(t *testing.T) {
	table := New(Config{After: 1})
	var want []string
	for i := range 30 {
		key := abi.Key{Name: fmt.Sprintf("o%02d", i)}
		table.Failed(key, same, trap, start.Add(time.Duration(i)*time.Second), 1)
		if i < 20 {
			want = append(want, key.Name)
		}
	}
	table.Failed(web, same, trap, start.Add(-time.Hour), 1)
	table.Forget(web)
	var got []string
	for _, s := range table.List(20) {
		got = append(got, s.Key.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" || table.Quarantined() != 30 {
		t.Errorf("%d: %s", table.Quarantined(), diff)
	}
}

func TestTable_MemoryIsBounded(t *testing.T) {
	table := New(Config{After: 1})
	long := Failure{Kind: abi.FailureTrap, Text: strings.Repeat("ü", maxText)}
	bytes := 0
	for i := range maxRows + 1000 {
		table.Failed(abi.Key{Name: fmt.Sprint(i)}, same, long, start, 1)
	}
	for _, r := range table.rows {
		bytes += len(r.Text)
	}
	if most := maxTexts*maxText + maxRows*shortText; table.Len() != maxRows || table.Quarantined() != maxRows || bytes > most {
		t.Errorf("%d objects, %d quarantined, %d bytes of text", table.Len(), table.Quarantined(), bytes)
	}
}

// The table agrees with a simple model: a list of runs for each object.
func TestTable_AgreesWithModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		cfg := Config{After: 1 + r.IntN(4), Initial: time.Second, Max: time.Minute}
		table := New(cfg)
		type model struct {
			subject Subject
			runs    int
			until   time.Time
		}
		objects := map[abi.Key]*model{}
		now := start
		for range 300 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			key, s := abi.Key{Name: fmt.Sprint(r.IntN(3))}, Subject{Object: uint64(r.IntN(2)), Module: uint64(r.IntN(10) / 9)}
			m := objects[key]
			if m == nil || m.subject != s {
				m = &model{subject: s}
				objects[key] = m
			}
			wait, _ := table.Check(key, s, now)
			if want := max(0, m.until.Sub(now)); wait != want {
				t.Fatalf("check: %v, want %v", wait, want)
			}
			if r.IntN(4) == 0 {
				objects[key] = &model{subject: s}
				table.Forget(key)
				continue
			}
			m.runs++
			if m.runs >= cfg.After {
				d := time.Minute
				if shift := m.runs - cfg.After; shift < 6 {
					d = time.Second << shift
				}
				m.until = now.Add(d)
			}
			wait, entered := table.Failed(key, s, trap, now, 1)
			if want := max(0, m.until.Sub(now)); m.runs >= cfg.After && wait != want || entered != (m.runs == cfg.After) {
				t.Fatalf("harmful %d: %v, %v, want %v", m.runs, wait, entered, want)
			}
			quarantined := 0
			for _, m := range objects {
				if m.runs >= cfg.After {
					quarantined++
				}
			}
			if table.Quarantined() != quarantined {
				t.Fatalf("%d are quarantined, want %d", table.Quarantined(), quarantined)
			}
		}
	}
}
