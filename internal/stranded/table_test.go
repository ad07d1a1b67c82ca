// SPDX-License-Identifier: Apache-2.0

package stranded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

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
		c := cluster{}
		for step := range 200 {
			n := rnd.IntN(objects)
			switch rnd.IntN(4) {
			case 0: // an object leaves the watch
				c[n] = fmt.Sprint(step)
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
		var want []Object
		for n, uid := range c {
			want = append(want, Object{Key: key(n), UID: uid})
		}
		same := func(a, b Object) int { return slices.Compare([]string{a.Key.Name}, []string{b.Key.Name}) }
		slices.SortFunc(want, same)
		slices.SortFunc(view.Objects, same)
		if !slices.EqualFunc(want, view.Objects, func(a, b Object) bool { return a.Key == b.Key && a.UID == b.UID }) || view.Total != len(want) {
			t.Fatalf("seed %d: knows %v, want %v", seed, view.Objects, want)
		}
		if gets, list := table.Task(); len(gets) > 0 || list {
			t.Fatalf("seed %d: still wants %v, list %v", seed, gets, list)
		}
	}
}

// The table is bounded, counts all objects of a list, and lists again as long as it does not know all.
func TestTable_IsBounded(t *testing.T) {
	var table Table
	c := cluster{}
	for n := range 2 * MaxObjects {
		c[n] = "u"
	}
	c.answer(&table, false)
	if v := table.View(); len(v.Objects) != MaxObjects || v.Total != 2*MaxObjects {
		t.Errorf("%d objects, total %d", len(v.Objects), v.Total)
	}
	for n := range 3 * MaxGets {
		table.Left(key(n))
	}
	if gets, list := table.Task(); len(gets) > 0 || !list {
		t.Errorf("%d objects, list %v", len(gets), list)
	}
	c.answer(&table, false)
	table.Recheck()
	if _, list := table.Task(); !list {
		t.Error("objects that are not remembered are not listed again")
	}
}

// A list returns only objects that are new, so that each is logged once.
func TestTable_ListReturnsNewObjects(t *testing.T) {
	var table Table
	if fresh := table.Listed([]Object{{Key: key(1), UID: "a"}, {Key: key(2), UID: "b"}}, "some"); len(fresh) != 2 {
		t.Errorf("%v", fresh)
	}
	fresh := table.Listed([]Object{{Key: key(1), UID: "a"}, {Key: key(2), UID: "c", Deleting: true}}, "")
	if len(fresh) != 1 || fresh[0].UID != "c" {
		t.Errorf("%v", fresh)
	}
	if v := table.View(); v.Unknown != "" || !v.Objects[0].Deleting || v.Objects[1].Deleting {
		t.Errorf("%+v", v)
	}
}
