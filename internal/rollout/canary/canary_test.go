// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/wasmctl/wasmctl/abi"
)

// config returns a Config with a share in percent.
func config(percent float64, namespaces []string, selector string) Config {
	c := Config{Share: percent / 100, Namespaces: namespaces}
	if selector != "" {
		c.Selector, _ = labels.Parse(selector)
	}
	return c
}

func object(i int) *Object {
	return &Object{Key: abi.Key{Namespace: "shop", Name: fmt.Sprint(i)}, UID: string(uuid.NewUUID()), Labels: labels.Set{}}
}

// The share of the objects is as configured, up to chance, for uids of the API server and
// for uids that differ in one digit only.
func TestAssignment_ShareIsThatOfTheObjects(t *testing.T) {
	const n = 20_000
	for _, percent := range []float64{0.5, 10, 50, 99} {
		for name, uid := range map[string]func(i int) string{
			"random": func(int) string { return string(uuid.NewUUID()) },
			"counts": func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", i) },
			"prefix": func(i int) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000", i) },
		} {
			s := New(config(percent, nil, ""), "sha256:x", nil)
			got := 0
			for i := range n {
				o := object(i)
				if o.UID = uid(i); s.Canary(o) {
					got++
				}
			}
			p := percent / 100
			if off := math.Abs(float64(got) - n*p); off > 5*math.Sqrt(n*p*(1-p)) {
				t.Errorf("%v%% of %d %s uids: %d", percent, n, name, got)
			}
		}
	}
}

// Of the existing objects, the canary gets exactly the share, and at least one; objects
// that do not match do not count.
func TestAssignment_ShareIsExactForThoseThatThereAre(t *testing.T) {
	for _, tc := range []struct {
		percent float64
		n, want int
	}{{50, 6, 3}, {50, 30, 15}, {20, 30, 6}, {1, 6, 1}, {0.5, 1000, 5}, {100, 6, 6}, {99, 7, 7}, {34, 1, 1}} {
		var objects []Object
		for i := range tc.n {
			o := object(i)
			objects = append(objects, *o)
			o.Key.Namespace = "elsewhere"
			o.UID += "x"
			objects = append(objects, *o)
		}
		s := New(config(tc.percent, []string{"shop"}, ""), "sha256:x", objects)
		if got, all := s.Count(func(abi.Key) bool { return true }); got != tc.want || all != 2*tc.n {
			t.Errorf("%g%% of %d objects: %d, want %d; %d in all", tc.percent, tc.n, got, tc.want, all)
		}
		if got, all := s.Count(func(key abi.Key) bool { return key.Namespace != "shop" }); got != 0 || all != tc.n {
			t.Errorf("of objects in another namespace: %d of %d, want 0 of %d", got, all, tc.n)
		}
	}
}

// An object stays on its side whatever happens to it; the same name with another uid is
// decided again; the same canary decides the same way.
func TestAssignment_ObjectStays(t *testing.T) {
	s := New(config(0, nil, "tier=web"), "sha256:x", nil)
	o := object(1)
	o.Labels = labels.Set{"tier": "web"}
	if !s.Canary(o) {
		t.Fatal("it matches")
	}
	o.Labels = labels.Set{"tier": "db"}
	if !s.Canary(o) {
		t.Error("it left its side with its label")
	}
	if gone := (&Object{Key: o.Key}); !s.Canary(gone) {
		t.Error("it left its side when it was deleted")
	}
	again := *o
	again.UID = "another"
	if s.Canary(&again) {
		t.Error("another object of its name is on its side")
	}
	s.Forget(o.Key)
	if s.Canary(&Object{Key: o.Key}) {
		t.Error("what was never seen is the canary's")
	}
	half := config(50, nil, "")
	first, second, other := New(half, "a", nil), New(half, "a", nil), New(half, "b", nil)
	differ := 0
	for i := range 1000 {
		o := object(i)
		if first.Canary(o) != second.Canary(o) {
			t.Fatal("a canary of the same module has other objects")
		}
		if first.Canary(o) != other.Canary(o) {
			differ++
		}
	}
	if differ < 400 || differ > 600 {
		t.Errorf("%d of 1000 objects are on another side for another module", differ)
	}
}

// The assignment agrees with a dumb model on random objects, which appear, change their
// labels, disappear and appear again.
func TestAssignment_Model(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cfg := config(30, []string{"a", "b"}, "tier in (web, db)")
	s := New(cfg, "salt", nil)
	type entry struct {
		uid    string
		canary bool
	}
	model := map[abi.Key]entry{}
	for range 20_000 {
		o := &Object{
			Key: abi.Key{Namespace: string(rune('a' + r.IntN(3))), Name: fmt.Sprint(r.IntN(20))}, UID: fmt.Sprint(r.IntN(3)),
			Labels: labels.Set{"tier": []string{"web", "db", "cache"}[r.IntN(3)]},
		}
		switch r.IntN(10) {
		case 0:
			s.Forget(o.Key)
			delete(model, o.Key)
			continue
		case 1:
			o.UID = ""
			if got, want := s.Canary(o), model[o.Key].canary; got != want {
				t.Fatalf("%v is gone: %v, want %v", o.Key, got, want)
			}
			continue
		}
		want, ok := model[o.Key]
		if !ok || want.uid != o.UID {
			want = entry{o.UID, (o.Key.Namespace == "a" || o.Key.Namespace == "b") && o.Labels.Get("tier") != "cache" && position("salt", o.UID) < 0.3}
			model[o.Key] = want
		}
		if got := s.Canary(o); got != want.canary {
			t.Fatalf("%+v: %v, want %v", o, got, want.canary)
		}
	}
}

func TestConfig_EnabledAndString(t *testing.T) {
	if (Config{}).Enabled() || !config(1, nil, "").Enabled() || !config(0, []string{"a"}, "").Enabled() || !config(0, nil, "a").Enabled() {
		t.Error("enabled")
	}
	if got, want := config(0.5, []string{"a", "b"}, "tier=web").String(), "0.5% of the objects in namespaces a, b with tier=web"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Many goroutines ask for the same objects while their labels change: all get the same
// answer for a uid.
func TestSides_HammerOneAnswerForAll(t *testing.T) {
	const workers, objects = 8, 200
	s := New(config(0, nil, "tier=web"), "sha256:x", nil)
	uids := make([]string, objects)
	for i := range uids {
		uids[i] = string(uuid.NewUUID())
	}
	var wg sync.WaitGroup
	answers := make([][objects]bool, workers)
	for w := range workers {
		wg.Go(func() {
			tiers := []string{"web", "db"}
			for i := range objects {
				o := &Object{Key: abi.Key{Namespace: "shop", Name: fmt.Sprint(i)}, UID: uids[i], Labels: labels.Set{"tier": tiers[w%2]}}
				answers[w][i] = s.Canary(o)
				if gone := (&Object{Key: o.Key}); s.Canary(gone) != answers[w][i] {
					t.Errorf("%s: another side without a uid", o.Key)
				}
				other := abi.Key{Namespace: "gone", Name: fmt.Sprint(w, i)}
				s.Canary(&Object{Key: other, UID: uids[i], Labels: o.Labels})
				s.Forget(other)
			}
		})
	}
	wg.Wait()
	for w := range answers {
		if answers[w] != answers[0] {
			t.Errorf("goroutine %d got other answers than the first", w)
		}
	}
}
