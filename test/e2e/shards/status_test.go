// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// sharer is a process that shares its objects with others.
type sharer struct {
	*e2e.Process
	socket string
	id     string // of the replica
}

func startSharer(t *testing.T, ns, kubeconfig, shards string) *sharer {
	t.Helper()
	socket := e2e.NewSocket(t)
	return &sharer{Process: e2e.Run(t, append([]string{
		e2e.Guests + "worse.wasm", "--name", "shared", "--for", "cm", "-n", ns, "--shards", shards,
		"--leader-elect-resource-namespace", ns, "--leader-elect-resource-name", "shared", "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", "--socket", socket, "--kubeconfig", kubeconfig,
	}, e2e.ShortLeases...)...), socket: socket}
}

// shards waits until the process reports its shards, and returns them.
func (s *sharer) shards() *admin.Shards {
	s.T.Helper()
	var st admin.Status
	enginetest.Until(s.T, "the process reports its slots", func() (ok bool) {
		var err error
		st, err = admin.NewClient(s.socket).Status(s.T.Context())
		return err == nil && st.Shards != nil
	})
	s.id = st.Shards.Replica
	return st.Shards
}

// wantShared waits until each of both runs half of the slots.
func wantShared(t *testing.T, all int, both ...*sharer) {
	t.Helper()
	for _, s := range both {
		enginetest.Until(t, "each slot is run, and a half of them here", func() bool {
			sh := s.shards()
			return sh.Here == all/2 && sh.States["here"]+sh.States["elsewhere"] == all && len(sh.Replicas) == 2
		})
	}
}

// TestShards_EachReplicaSaysWhoRunsWhat: on any replica, status reports that each slot
// is run, explain names the replica that runs an object, and the metrics add up to all
// slots.
func TestShards_EachReplicaSaysWhoRunsWhat(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	one, two := startSharer(t, ns, kubeconfig, "8"), startSharer(t, ns, kubeconfig, "8")
	wantShared(t, 8, one, two)
	byID := map[string]*sharer{one.id: one, two.id: two}
	for _, s := range byID {
		text := e2e.Steer(t, "status", s.socket)
		if !e2e.ContainsAll(text, []string{"runs 4 of 8 slots", "8 of 8 slots are run by one replica each", "replica " + s.id, "takes slots, this one"}) || strings.Contains(text, "leads") {
			t.Errorf("status:\n%s", text)
		}
		enginetest.Until(t, "a row for each replica, with its controllers", func() bool {
			all := e2e.Steer(t, "status", s.socket, "--all-replicas")
			return e2e.ContainsAll(all, []string{one.id, two.id, "CONTROLLERS", "the same module at each replica"}) && s.shards().Replicas[0].Controllers == 1 && s.shards().Replicas[1].Controllers == 1
		})
		sums := e2e.Scraped(t, e2e.Served(t, s.Process, "/metrics")).Sums
		if sums["wasmctl_shard_slots"] != 8 || sums["wasmctl_shard_epoch"] == 0 || sums["wasmctl_shard_moves_total"] < 4 {
			t.Errorf("metrics: %v slots, epoch %v, %v moves", sums["wasmctl_shard_slots"], sums["wasmctl_shard_epoch"], sums["wasmctl_shard_moves_total"])
		}
		if code, text := e2e.Fetch(t, e2e.Served(t, s.Process, "/readyz")+"/readyz"); code != 200 {
			t.Errorf("readyz: %d %s", code, text)
		}
	}
	wantSteered(t, one, two)
	client, err := kubernetes.NewForConfig(devclustertest.Shared(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		o, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), enginetest.ObjectName(i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantExplained(t, byID, o.Name, ns, slots.Of(string(o.UID), 8))
	}
	for _, s := range byID {
		if text := e2e.Steer(t, "explain", s.socket, "cm/none", "-n", ns); !strings.Contains(text, "absent") {
			t.Errorf("of an object that is not there: %s", text)
		}
	}
}

// wantSteered pauses and triggers the controller of both replicas by a command to one.
func wantSteered(t *testing.T, one, two *sharer) {
	t.Helper()
	paused := func(s *sharer) bool {
		st, err := admin.NewClient(s.socket).Status(t.Context())
		return err == nil && st.Controllers[0].Paused
	}
	if text := e2e.Steer(t, "pause", one.socket, "shared"); text != "paused shared, at 2 replicas\n" || !paused(one) || !paused(two) {
		t.Errorf("%s: paused: %t and %t", text, paused(one), paused(two))
	}
	if text := e2e.Steer(t, "resume", two.socket, "shared"); text != "resumed shared, at 2 replicas\n" || paused(one) || paused(two) {
		t.Errorf("%s: paused: %t and %t", text, paused(one), paused(two))
	}
	if text := e2e.Steer(t, "trigger", one.socket, "shared", "--all"); text != "triggered all objects, at 2 replicas\n" {
		t.Error(text)
	}
	for _, s := range []*sharer{one, two} {
		s.WantLine(`"msg":"triggered all objects, as all replicas do"`)
	}
}

// wantExplained asks both replicas about an object.
func wantExplained(t *testing.T, byID map[string]*sharer, name, ns string, slot int) {
	t.Helper()
	runs := ""
	for id, s := range byID {
		list, err := admin.NewClient(s.socket).Explain(t.Context(), admin.Question{Kind: "cm", Object: abi.Key{Namespace: ns, Name: name}})
		if err != nil || len(list) != 1 || list[0].Slot == nil || list[0].Slot.Number != slot || list[0].Slot.Of != 8 || len(list[0].Slot.Replicas) != 1 {
			t.Fatalf("%s of %s: %+v (%v)", name, id, list, err)
		}
		e := list[0]
		if runs == "" {
			runs = e.Slot.Replicas[0]
		}
		state, why := "elsewhere", "replica "+runs+" runs it, since epoch"
		if id == runs {
			state, why = "here", "this replica runs it, since epoch"
		}
		if id == runs {
			e2e.Steer(t, "trigger", s.socket, ns+"/"+name)
		} else if code, text := e2e.Refused(t, "trigger", s.socket, ns+"/"+name); code == e2e.ExitOK || !strings.Contains(text, "replica "+runs+" runs it") {
			t.Errorf("trigger of %s at %s: %d %s", name, id, code, text)
		}
		if e.Slot.Replicas[0] != runs || e.Slot.State != state || !strings.Contains(strings.Join(e.Why, "\n"), why) || (e.State == "elsewhere") != (id != runs) {
			t.Errorf("%s of %s: %s, %q, %+v", name, id, e.State, e.Why, e.Slot)
		}
	}
}

// TestShards_AReplicaWithoutSlotsIsReady: of two replicas with only one slot, one has
// none, and is still ready. Explain and status work there too.
func TestShards_AReplicaWithoutSlotsIsReady(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	one, two := startSharer(t, ns, kubeconfig, "1"), startSharer(t, ns, kubeconfig, "1")
	for _, s := range []*sharer{one, two} {
		enginetest.Until(t, "the slot is run", func() bool {
			sh := s.shards()
			return sh.Covered && sh.States["moving"] == 0 && len(sh.Replicas) == 2
		})
	}
	idle := one
	if one.shards().Here == 1 {
		idle = two
	}
	if here := idle.shards().Here; here != 0 {
		t.Errorf("both run %d of 1 slot", here)
	}
	url := e2e.Served(t, idle.Process, "/readyz")
	for _, path := range []string{"/readyz", "/livez"} {
		if code, text := e2e.Fetch(t, url+path+"?verbose"); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if text := e2e.Steer(t, "explain", idle.socket, "cm/"+enginetest.ObjectName(0), "-n", ns); !strings.Contains(text, "elsewhere") {
		t.Errorf("explain: %s", text)
	}
	if code, text := e2e.Refused(t, "explain", idle.socket, "pods/x", "-n", ns); code == e2e.ExitOK || !strings.Contains(text, "no controller reconciles this kind") {
		t.Errorf("explain of another kind: %d %s", code, text)
	}
}

// TestShards_AnEventSaysThatASlotIsRunTwice: if a Lease claims a slot that another
// replica runs, a replica reports it in an event about the record, and its end in
// another one.
func TestShards_AnEventSaysThatASlotIsRunTwice(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	one, two := startSharer(t, ns, kubeconfig, "4"), startSharer(t, ns, kubeconfig, "4")
	wantShared(t, 4, one, two)
	client, err := kubernetes.NewForConfig(devclustertest.Shared(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	leases := client.CoordinationV1().Leases(ns)
	lease, err := leases.Get(t.Context(), one.id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	double := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "zzz", Labels: lease.Labels, Annotations: lease.Annotations}, Spec: lease.Spec}
	if _, err = leases.Create(t.Context(), double, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ reason, note string }{{"SlotsNotCovered", "are run by two replicas each"}, {"SlotsCovered", "each slot is run by one replica"}} {
		enginetest.Until(t, "there is an event "+want.reason, func() bool {
			list, err := client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + want.reason})
			if err != nil || len(list.Items) == 0 {
				return false
			}
			if e := list.Items[0]; len(list.Items) > 1 || e.Regarding.Kind != "Lease" || e.Regarding.Name != "shared-shards" || !strings.Contains(e.Note, want.note) {
				t.Fatalf("events: %+v", list.Items)
			}
			return true
		})
	}
	enginetest.Until(t, "one replica has ended the lease, and counted that", func() bool {
		ended := 0.0
		for _, s := range []*sharer{one, two} {
			ended += e2e.Scraped(t, e2e.Served(t, s.Process, "/metrics")).Sums["wasmctl_shard_leases_ended_total"]
		}
		return ended == 1
	})
}
