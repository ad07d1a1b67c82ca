// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

var shardsNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// shardView is the view of replica a: it runs slot 0, b runs 1, no replica runs 2, and b
// will run 3.
func shardView() *shard.View {
	var open0, open1 slots.Set
	open0.Put(0, true)
	open1.Put(1, true)
	moved := shardsNow.Add(-3 * time.Minute)
	return &shard.View{
		ID: "a", Slots: 4, Patience: 5 * time.Second,
		Own: shard.State{Takes: true, Open: open0, Load: map[int]int{0: 1500}, Summary: shard.Summary{Modules: map[string]shard.Module{"web": {Digest: "d1", Revision: 2}}}},
		Record: &shard.Record{Epoch: 12, Keys: map[string]string{"web": slots.Namespace, "dns": slots.UID}, Slots: []shard.Slot{
			{Owner: "a", Next: "b", Epoch: 10, Moved: moved}, {Owner: "b", Epoch: 12, Moved: moved}, {Owner: "c", Epoch: 11, Moved: moved}, {Owner: "b", Epoch: 9, Moved: moved},
		}},
		Leases: []shard.Lease{
			{ID: "a", Lasts: 15 * time.Second, Seen: shardsNow.Add(-time.Second), Heard: true, State: shard.State{Summary: shard.Summary{Modules: map[string]shard.Module{"web": {Digest: "d1", Revision: 2}}}}},
			{ID: "b", Lasts: 15 * time.Second, Seen: shardsNow.Add(-2 * time.Second), Heard: true, State: shard.State{Open: open1, Summary: shard.Summary{Version: "v1.2.3", Controllers: 2, Runs: 7, Modules: map[string]shard.Module{"dns": {Digest: "d0", Revision: 1, Paused: true}, "web": {Digest: "d2", Revision: 5}}}}},
			{ID: "c", Lasts: 15 * time.Second, Seen: shardsNow.Add(-20 * time.Second), Heard: true, State: shard.State{Summary: shard.Summary{Modules: map[string]shard.Module{"web": {Digest: "d2", Revision: 5}}}}},
			{ID: "d", Lasts: 15 * time.Second, Seen: shardsNow.Add(-9 * time.Second), Heard: true, State: shard.State{Takes: true, Summary: shard.Summary{Modules: map[string]shard.Module{"web": {Digest: "d2", Revision: 4}}}}},
			{ID: "e", Lasts: 15 * time.Second, Seen: shardsNow},
		},
	}
}

func TestShardStatus_SaysWhatIsRunAndByWhom(t *testing.T) {
	st := shardStatus(shardView(), shardsNow)
	if st.Replica != "a" || st.Epoch != 12 || st.Slots != 4 || st.Here != 1 || st.Covered || st.By["web"] != "namespace" {
		t.Errorf("%+v", st)
	}
	if want := "2 of 4 slots are run by one replica each; slot 2 has no owner; slot 3 is moving"; st.Coverage != want {
		t.Errorf("%q, want %q", st.Coverage, want)
	}
	for i, want := range []admin.Replica{
		{ID: "a", State: "takes slots", Slots: 1, Open: 1, Ranges: "0", Load: 1.5, Heard: shardsNow.Add(-time.Second)},
		{ID: "b", Version: "v1.2.3", State: "takes none", Slots: 2, Open: 1, Ranges: "1", Heard: shardsNow.Add(-2 * time.Second), Controllers: 2, Runs: 7},
		{ID: "c", State: "silent", Slots: 1, Heard: shardsNow.Add(-20 * time.Second)},
		{ID: "d", State: "overdue", Heard: shardsNow.Add(-9 * time.Second)},
		{ID: "e", State: "overdue"},
	} {
		if st.Replicas[i] != want {
			t.Errorf("%+v, want %+v", st.Replicas[i], want)
		}
	}
	want := []admin.SharedModule{
		{Controller: "dns", Digest: "d0", Replicas: []admin.ModuleAt{{ID: "b", Revision: 1, Paused: true}}},
		{Controller: "web", Digest: "d2", Replicas: []admin.ModuleAt{{ID: "b", Revision: 5}, {ID: "d", Revision: 4}}},
		{Controller: "web", Digest: "d1", Replicas: []admin.ModuleAt{{ID: "a", Revision: 2}}},
	}
	if !reflect.DeepEqual(st.Modules, want) {
		t.Errorf("modules: %+v, want %+v", st.Modules, want)
	}
}

func TestUneven_NamesASlotWithFarMoreThanOthers(t *testing.T) {
	even := map[int]int{}
	for i := range 13 {
		even[i] = 40
	}
	uneven := maps.Clone(even)
	uneven[7] = 600
	few := map[int]int{0: 100, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0}
	for _, c := range []struct {
		by   string
		n    map[int]int
		want string
	}{
		{"namespace", uneven, "web: slot 7 has 600 of the 1080 objects here: a namespace, and those with similar names, cannot be divided; if the module allows it, --shard-by uid spreads them"},
		{"uid", uneven, "web: slot 7 has 600 of the 1080 objects here"},
		{"namespace", even, ""},
		{"namespace", few, ""},
		{"namespace", nil, ""},
		{"namespace", map[int]int{3: 5000}, ""},
		{"namespace", map[int]int{3: 5000, 4: 4000}, ""},
	} {
		if got := unevenText("web", c.by, c.n); got != c.want {
			t.Errorf("%v by %s: %q, want %q", c.n, c.by, got, c.want)
		}
	}
}

// keyIn returns a uid, or a namespace, that is in a slot of 4.
func keyIn(slot int) string {
	key := "k"
	for slots.Of(key, 4) != slot {
		key += "k"
	}
	return key
}

func TestSlotOf_SaysWhoRunsAnObject(t *testing.T) {
	v := shardView()
	for slot, want := range []string{
		"slot 0 of 4 by namespace: this replica runs it, since epoch 10, 3m0s ago; it will move to replica b",
		"slot 1 of 4 by namespace; replica b runs it, since epoch 12, 3m0s ago",
		"slot 2 of 4 by namespace has no owner",
		"slot 3 of 4 by namespace; its owner, replica b, does not run it yet, since epoch 9, 3m0s ago",
	} {
		s := slotOf(v, "web", "", keyIn(slot), shardsNow)
		if s == nil || !strings.HasPrefix(slotText(s, "a", shardsNow), want) {
			t.Errorf("slot %d: %+v: %q, want %q", slot, s, slotText(s, "a", shardsNow), want)
		}
		if byUID := slotOf(v, "dns", keyIn(slot), "any", shardsNow); byUID == nil || byUID.Number != slot || byUID.By != "uid" {
			t.Errorf("slot %d by uid: %+v", slot, byUID)
		}
	}
	v.Own.Open = v.Leases[1].State.Open
	if text := slotText(slotOf(v, "web", "", keyIn(1), shardsNow), "a", shardsNow); !strings.Contains(text, "run by several replicas, b and a") {
		t.Errorf("double: %q", text)
	}
	for what, s := range map[string]*admin.Slot{
		"without shards": slotOf(nil, "web", "", "x", shardsNow), "of an unknown controller": slotOf(v, "other", "u", "x", shardsNow),
		"without a uid": slotOf(v, "dns", "", "x", shardsNow), "without a record": slotOf(&shard.View{Slots: 4}, "web", "", "x", shardsNow),
	} {
		if s != nil {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// TestWatchStatuses_SlotsOfASourceAreOne: 64 slots are shown in one row, which also shows
// if one of them is not ready.
func TestWatchStatuses_SlotsOfASourceAreOne(t *testing.T) {
	watch := func(resource string, slot, n int, phase watcher.Phase) controller.WatchState {
		w := controller.WatchState{State: watcher.State{Phase: phase, Objects: 2, LastProgress: shardsNow.Add(time.Duration(-slot) * time.Second)}}
		w.Source.Resource.Resource = resource
		if n > 0 {
			w.Source.Shard = slots.Range{Field: slots.UID, Slot: slot, N: n}
		}
		return w
	}
	got := watchStatuses([]controller.WatchState{
		watch("pods", 0, 8, watcher.Ready), watch("secrets", 0, 0, watcher.Ready), watch("pods", 5, 8, watcher.Syncing), watch("pods", 3, 8, watcher.Ready),
	})
	if len(got) != 2 || got[0].Source != "pods (3 of 8 shards)" || got[0].Objects != 6 || got[0].Phase != "syncing" || got[1].Source != "secrets" ||
		!got[0].LastProgress.Equal(shardsNow.Add(-5*time.Second)) {
		t.Errorf("%+v", got)
	}
}
