// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// shardedStatus returns a status with n replicas.
func shardedStatus(n int) *admin.Status {
	st := statusWith(2)
	leads := true
	st.Leader = &leads // must not be shown
	st.Shards = &admin.Shards{Replica: "replica-0", Epoch: 7, Slots: 64, Here: 12, Coverage: "63 of 64 slots are run by one replica each; slot 17 has no owner"}
	for i := range n {
		st.Shards.Replicas = append(st.Shards.Replicas, admin.Replica{
			ID: fmt.Sprintf("replica-%d", i), Version: fmt.Sprintf("v1.2.%d", i), State: "takes slots", Slots: 12, Open: 11, Load: 0.25, Heard: statusNow.Add(-2 * time.Second), Controllers: 3, Objects: 7654, Runs: 99,
		})
	}
	st.Shards.Replicas[n-1].State = "silent"
	return st
}

func TestStatus_SaysWhatAReplicaRuns(t *testing.T) {
	text := strings.Join(StatusLines(shardedStatus(3), statusNow, Screen{}, false), "\n")
	for _, want := range []string{", runs 12 of 64 slots, 2 controllers", "replica replica-0, epoch 7", "slot 17 has no owner", "takes slots, this one", "silent"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there:\n%s", want, text)
		}
	}
	if strings.Contains(text, "leads") || strings.Contains(text, "7654") {
		t.Errorf("leads, or what --all-replicas has:\n%s", text)
	}
	all := ReplicaLines(shardedStatus(3), statusNow, Screen{})
	if text := strings.Join(all, "\n"); !strings.Contains(text, "7654") || !strings.Contains(text, "v1.2.2") || strings.Contains(text, "controller-000") || len(all) != 8 {
		t.Errorf("replicas:\n%s", text)
	}
}

// TestReplicas_ShowsWhichRunAnotherModule: the digests are next to each other, and a replica that was not heard of has no time.
func TestReplicas_ShowsWhichRunAnotherModule(t *testing.T) {
	st := shardedStatus(3)
	st.Shards.Hints = []string{"web: slot 7 has 600 of the 1080 objects here"}
	st.Shards.Replicas[1].Heard, st.Shards.Replicas[1].State = time.Time{}, "overdue"
	st.Shards.Modules = []admin.SharedModule{
		{Controller: "dns", Digest: "0123456789ab", Replicas: []admin.ModuleAt{{ID: "replica-0", Revision: 1}, {ID: "replica-1", Revision: 1}}},
		{Controller: "dry", Digest: "0123456789ab", Replicas: []admin.ModuleAt{{ID: "replica-0", Revision: 1, Paused: true}, {ID: "replica-1", Revision: 4}}},
		{Controller: "web", Digest: "aaaaaaaaaaaa", Replicas: []admin.ModuleAt{{ID: "replica-0", Revision: 2}, {ID: "replica-1", Revision: 3}}},
		{Controller: "web", Digest: "bbbbbbbbbbbb", Replicas: []admin.ModuleAt{{ID: "replica-2", Revision: 5}}},
	}
	text := strings.Join(ReplicaLines(st, statusNow, Screen{}), "\n")
	for _, want := range []string{
		"uneven: web: slot 7 has 600", "  0.25      -  ", "overdue\n", "dns         0123456789ab      2  the same module at each replica\n",
		"dry         0123456789ab      2  replica-0 (revision 1, paused), replica-1 (revision 4)\n",
		"web         aaaaaaaaaaaa      2  differs: replica-0 (revision 2), replica-1 (revision 3)\n", "web         bbbbbbbbbbbb      1  differs: replica-2 (revision 5)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there:\n%s", want, text)
		}
	}
}

func TestReplicas_NeverWrap(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		st := shardedStatus(5)
		for _, line := range append(ReplicaLines(st, statusNow, Screen{width: width}), StatusLines(st, statusNow, Screen{width: width}, true)...) {
			if textWidth(line) > width {
				t.Errorf("at %d columns: %q", width, line)
			}
		}
	}
}
