// SPDX-License-Identifier: Apache-2.0

package stranded

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

func key(n int) abi.Key { return abi.Key{Namespace: "ns", Name: fmt.Sprint(n)} }

// cluster is the definition: the objects that are stranded now, by number, with their uid.
type cluster map[int]string

// answer answers a Task, as a Finder would, unless the cluster does not answer.
func (c cluster) answer(t *Table, fails bool) {
	gets, list := t.Task()
	switch {
	case fails:
	case list:
		var found []Object
		for n, uid := range c {
			found = append(found, Object{Key: key(n), UID: uid})
		}
		t.Listed(found, "")
	default:
		for _, k := range gets {
			var n int
			_, _ = fmt.Sscan(k.Name, &n)
			if uid, ok := c[n]; ok {
				t.Found(&Object{Key: k, UID: uid})
			} else {
				t.Gone(k)
			}
		}
	}
}

// Whatever happens in the cluster, and however often it does not answer: after a Recheck and some answers, a table knows what is true.
func TestTable_KnowsTheTruthInTheEnd(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		objects := 1 + rnd.IntN(3*MaxGets)
		var table Table
		c, lefts := cluster{}, cluster{}
		for step := range 200 {
			n := rnd.IntN(objects)
			switch rnd.IntN(4) {
			case 0: // an object leaves the watch
				c[n] = fmt.Sprint(step)
				lefts[n] = c[n]
				table.Left(key(n))
			case 1: // an object is deleted in the watched set
				if _, ok := c[n]; !ok {
					table.Left(key(n))
				}
			case 2: // the finalizer is taken off
				delete(c, n)
			case 3:
				c.answer(&table, rnd.IntN(3) == 0)
			}
		}
		for range objects/MaxGets + 2 {
			table.Recheck()
			c.answer(&table, false)
		}
		view := table.View()
		got := cluster{}
		for _, o := range view.Objects {
			var n int
			_, _ = fmt.Sscan(o.Key.Name, &n)
			got[n] = o.UID
			if left := lefts[n] == o.UID; o.Left && !left {
				t.Fatalf("seed %d: %v has left: %v", seed, o, left)
			}
		}
		if !maps.Equal(got, c) {
			t.Fatalf("seed %d: knows %v, want %v", seed, got, c)
		}
		if gets, list := table.Task(); len(gets) > 0 || list {
			t.Fatalf("seed %d: still wants %v, list %v", seed, gets, list)
		}
	}
}

// The table is bounded: too many candidates lead to a list, and so does a list with more objects than are remembered.
func TestTable_IsBounded(t *testing.T) {
	var table Table
	c := cluster{}
	for n := range 2 * MaxObjects {
		c[n] = "u"
	}
	c.answer(&table, false)
	if v := table.View(); len(v.Objects) != MaxObjects {
		t.Errorf("%d objects", len(v.Objects))
	}
	for n := range MaxObjects {
		table.Left(key(n))
	}
	if gets, list := table.Task(); len(gets) != MaxGets || list {
		t.Errorf("%d objects, list %v", len(gets), list)
	}
	for n := range 2 * MaxObjects {
		table.Left(key(n))
	}
	if gets, list := table.Task(); len(gets) > MaxGets || !list {
		t.Errorf("%d objects, list %v", len(gets), list)
	}
	c.answer(&table, false)
	table.Recheck()
	if _, list := table.Task(); !list {
		t.Error("objects that are not remembered are not listed again")
	}
}

// An object is stranded if it has left the watch, or if its deletion waits for long. It remains so after a list, but a new object with its
// name is not.
func TestTable_StrandedObjects(t *testing.T) {
	now := time.Unix(1e9, 0)
	names := func(table *Table) (names []string) {
		for _, o := range table.View().Stranded(now) {
			names = append(names, o.Key.Name)
		}
		return names
	}
	var table Table
	objects := []Object{
		{Key: key(1), UID: "a"},
		{Key: key(2), UID: "b"},
		{Key: key(3), UID: "c", Deleted: now.Add(-time.Minute)},
		{Key: key(4), UID: "d", Deleted: now.Add(-time.Hour)},
	}
	table.Listed(slices.Clone(objects), "some")
	if got := names(&table); !slices.Equal(got, []string{"4"}) || table.View().Unknown != "some" {
		t.Errorf("stranded: %v", got)
	}
	table.Left(key(1))
	table.Found(&objects[0])
	if got := names(&table); !slices.Equal(got, []string{"4", "1"}) {
		t.Errorf("stranded: %v", got)
	}
	table.Listed(slices.Clone(objects), "")
	if got := names(&table); !slices.Equal(got, []string{"4", "1"}) || table.View().Unknown != "" {
		t.Errorf("stranded after a list: %v", got)
	}
	objects[0].UID = "another"
	table.Listed(objects, "")
	if got := names(&table); !slices.Equal(got, []string{"4"}) {
		t.Errorf("stranded: %v", got)
	}
}
