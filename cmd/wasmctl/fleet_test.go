// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// replica is an admin.Service of a replica. It runs the objects in its list.
type replica struct {
	admin.Service

	id          string
	controllers []string
	objects     map[string]string // the replica of each object
	leads       *bool
	shards      bool
	group       []string // the replicas that share the controllers
	digest      string   // of the live modules
}

// Swap refuses the module "bad".
func (r *replica) Swap(_ context.Context, _ string, wasm []byte, _ admin.SwapOptions) (admin.Swapped, error) {
	if string(wasm) == "bad" && r.id != "a" {
		return admin.Swapped{}, errors.New("refused")
	}
	r.digest = string(wasm)
	return admin.Swapped{Revision: 7}, nil
}

func (r *replica) Pause(context.Context, string, bool) (admin.Steered, error) {
	return admin.Steered{Replicas: len(r.group)}, nil
}

func (r *replica) Status() admin.Status {
	st := admin.Status{Leader: r.leads, LeaderID: "host-b_1"}
	for _, name := range r.controllers {
		st.Controllers = append(st.Controllers, admin.Controller{Name: name, State: admin.StateOK, Digest: r.digest})
	}
	if r.shards {
		st.Shards = &admin.Shards{Replica: r.id, Slots: 4, Here: 1, By: map[string]string{"wasmctl-reconcilers": "uid"}}
	}
	for _, id := range r.group {
		st.Shards.By["web"] = "uid"
		st.Shards.Replicas = append(st.Shards.Replicas, admin.Replica{ID: id})
		st.Shards.Modules = append(st.Shards.Modules, admin.SharedModule{Controller: "web", Digest: "old", Replicas: []admin.ModuleAt{{ID: id}}})
	}
	return st
}

func (r *replica) Explain(_ context.Context, q admin.Question) ([]admin.Explanation, error) {
	switch {
	case q.Controller != "" && !slices.Contains(r.controllers, q.Controller):
		return nil, fmt.Errorf("controller[%s]: %w", q.Controller, admin.ErrUnknown)
	case q.Kind == "secrets":
		return nil, failure.Usage.Wrap(errors.New("secrets: no controller reconciles this kind"))
	}
	e := admin.Explanation{Controller: q.Controller, Object: q.Object.String(), State: "idle"}
	if of := r.objects[q.Object.String()]; r.shards && of != "" {
		e.Slot = &admin.Slot{State: "here", Replicas: []string{of}}
		if of != r.id {
			e.State, e.Slot.State = "elsewhere", "elsewhere"
		}
	} else if r.leads != nil && !*r.leads {
		e.State = admin.StateStandby
	}
	return []admin.Explanation{e}, nil
}

// fleetOf serves the replicas on sockets.
func fleetOf(t *testing.T, replicas ...*replica) (f fleet) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, len(replicas))
	t.Cleanup(func() {
		stop()
		for range replicas {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		_ = os.RemoveAll(dir)
	})
	for i, r := range replicas {
		path := filepath.Join(dir, fmt.Sprint(i))
		go func() { ended <- admin.New(path, r, slog.New(slog.DiscardHandler)).Run(ctx) }()
		m := member{name: podPrefix + r.id, client: admin.NewClient(path)}
		enginetest.Until(t, "the replica answers", func() bool {
			m.status, err = m.client.Status(t.Context())
			return err == nil
		})
		f = append(f, m)
	}
	return f
}

// at returns the name of the member with a client.
func (f fleet) at(c *admin.Client) string {
	if i := slices.IndexFunc(f, func(m member) bool { return m.client == c }); i >= 0 {
		return strings.TrimPrefix(f[i].name, podPrefix)
	}
	return ""
}

// TestFleet_FindsTheReplica that runs a controller, or an object of it.
func TestFleet_FindsTheReplica(t *testing.T) {
	objects := map[string]string{"shop/x": "a", "shop/y": "b", "shop/z": "b"}
	keys := func(names ...string) (list []abi.Key) {
		for _, name := range names {
			list = append(list, abi.Key{Namespace: "shop", Name: name})
		}
		return list
	}
	leader := fleetOf(t,
		&replica{id: "a", controllers: []string{"web"}, leads: new(false)},
		&replica{id: "b", controllers: []string{"web", "t1.site"}, leads: new(true)})
	reconcilers := fleetOf(t,
		&replica{id: "a", controllers: []string{"t1.site"}, shards: true},
		&replica{id: "b", controllers: []string{"t2.site"}, shards: true})
	shared := fleetOf(t,
		&replica{id: "a", controllers: []string{"web"}, shards: true, objects: objects},
		&replica{id: "b", controllers: []string{"web"}, shards: true, objects: objects})
	for _, c := range []struct {
		name, controller string
		f                fleet
		objects          []abi.Key
		want, err        string
	}{
		{name: "leader", controller: "web", f: leader, want: "b"},
		{name: "of the leader", controller: "t1.site", f: leader, want: "b"},
		{name: "first", controller: "t1.site", f: reconcilers, want: "a"},
		{name: "second", controller: "t2.site", f: reconcilers, objects: keys("x"), want: "b"},
		{name: "unknown", controller: "t3.site", f: reconcilers, err: "controller[t3.site]: unknown controller; the process runs: t1.site, t2.site"},
		{name: "object", controller: "web", f: shared, objects: keys("x"), want: "a"},
		{name: "objects", controller: "web", f: shared, objects: keys("y", "z"), want: "b"},
		{name: "objects of both", controller: "web", f: shared, objects: keys("x", "y"), err: "one at a time"},
		{name: "absent object", controller: "web", f: shared, objects: keys("gone"), want: "a"},
		{name: "all objects", controller: "web", f: shared, err: "controller[web]: runs on several pods: choose one with --pod: a, b"},
		{name: "alone", controller: "web", f: shared[1:], want: "b"},
	} {
		got, err := c.f.of(t.Context(), c.controller, c.objects)
		if c.f.at(got) != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, c.f.at(got), err)
		}
	}
	if m, err := leader.only(); err != nil || m.name != "pod b" {
		t.Errorf("the leader: %+v, %v", m, err)
	}
	if _, err := shared.only(); err == nil || !strings.Contains(err.Error(), "--pod: a, b") {
		t.Error(err)
	}
}

// TestFleet_ChangesTheModuleOfAllThatShareIt, one after the other until one refuses it. Replicas that were not reached are named.
func TestFleet_ChangesTheModuleOfAllThatShareIt(t *testing.T) {
	group := []string{"a", "b", "c"}
	var all []*replica
	for _, id := range group {
		all = append(all, &replica{id: id, controllers: []string{"web"}, shards: true, group: group, digest: "old"})
	}
	other := &replica{id: "x", controllers: []string{"web"}, shards: true, group: []string{"x"}, digest: "old"}
	f := fleetOf(t, append(all, other)...)
	for _, c := range []struct {
		name, module string
		f            fleet
		out, err     string
	}{
		{name: "all", module: "new", f: f[:3], out: "pod a: revision 7 is live\npod b: revision 7 is live\npod c: revision 7 is live\n"},
		{name: "one", module: "new", f: f[:1], out: "revision 7 is live\nunchanged at other replicas: b, c; --in NAMESPACE reaches all\n"},
		{name: "refused", module: "bad", f: f[:3], out: "pod a: revision 7 is live\n", err: "pod b: refused; not asked: c"},
		{name: "two groups", module: "new", f: f, err: "controller[web]: runs on several pods: choose one with --pod: a, b, c, x"},
	} {
		var out strings.Builder
		o := &steerOptions{streams: streams{out: &out, err: io.Discard}}
		members, err := c.f.each(t.Context(), "web")
		if err == nil {
			err = o.swapEach(t.Context(), members, "web", false, func(ctx context.Context, client *admin.Client) (admin.Swapped, error) {
				return client.Swap(ctx, "web", []byte(c.module), admin.SwapOptions{})
			})
		}
		if out.String() != c.out || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q, %v", c.name, out.String(), err)
		}
	}
	if c, err := f[:3].steered(t.Context(), "web", nil); err != nil || f.at(c) != "a" {
		t.Errorf("a pause: %q, %v", f.at(c), err)
	}
	if _, err := f.steered(t.Context(), "web", nil); err == nil {
		t.Error("a pause of one of two groups")
	}
}

// TestFleet_ExplainsByTheReplicaThatRunsIt: each object has one explanation.
func TestFleet_ExplainsByTheReplicaThatRunsIt(t *testing.T) {
	objects := map[string]string{"shop/x": "a", "shop/y": "b"}
	f := fleetOf(t,
		&replica{id: "a", controllers: []string{"web"}, shards: true, objects: objects},
		&replica{id: "b", controllers: []string{"web", "only-b"}, shards: true, objects: objects})
	for _, c := range []struct{ controller, object, want string }{{"web", "x", "a"}, {"web", "y", "b"}, {"only-b", "y", "b"}} {
		list, err := f.explain(t.Context(), []admin.Question{{Controller: c.controller, Object: abi.Key{Namespace: "shop", Name: c.object}}})
		if err != nil || len(list) != 1 || list[0].State != "idle" || list[0].Slot.Replicas[0] != c.want {
			t.Errorf("%+v: %+v, %v", c, list, err)
		}
	}
	if _, err := f.explain(t.Context(), []admin.Question{{Kind: "secrets", Object: abi.Key{Name: "x"}}}); err == nil || strings.Contains(err.Error(), "--in") {
		t.Error("all replicas were asked", err)
	}
	if _, err := f[:1].explain(t.Context(), []admin.Question{{Kind: "secrets", Object: abi.Key{Name: "x"}}}); err == nil || !strings.Contains(err.Error(), "this replica runs 1 of 4 slots; to ask all replicas, use --in") {
		t.Error(err)
	}
	standby := admin.Explanation{Controller: "web", Object: "shop/x", State: admin.StateStandby}
	runs := admin.Explanation{Controller: "web", Object: "shop/x", State: "idle", Cached: &admin.Cached{}}
	other := admin.Explanation{Controller: "other", Object: "shop/x", State: "absent"}
	if diff := cmp.Diff([]admin.Explanation{runs, other}, merge([]admin.Explanation{other, standby, runs, standby})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFleet_NamesTheOtherReplica: one that does not run a controller does not deny that it exists.
func TestFleet_NamesTheOtherReplica(t *testing.T) {
	f := fleetOf(t,
		&replica{id: "a", controllers: []string{"wasmctl-reconcilers", "t1.site"}, shards: true, objects: map[string]string{"t2/site": "b", "t1/site": "a"}},
		&replica{id: "c", controllers: []string{"wasmctl-reconcilers"}, leads: new(false)})
	unknown := fmt.Errorf("controller[x]: %w", admin.ErrUnknown)
	for name, want := range map[string]string{
		"t2.site": "; replica b runs it; to ask all replicas, use --in NAMESPACE",
		"t3.site": "; this replica runs 1 of 4 slots; to ask all replicas, use --in NAMESPACE",
	} {
		if err := f[:1].failed(t.Context(), name, unknown); !strings.HasSuffix(err.Error(), want) || !errors.Is(err, admin.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f[1:].failed(t.Context(), "t1.site", unknown); !strings.HasSuffix(err.Error(), "; this replica does not lead, but host-b_1 does; to ask all replicas, use --in NAMESPACE") {
		t.Error(err)
	}
	if err := f.failed(t.Context(), "t1.site", unknown); strings.Contains(err.Error(), "--in") {
		t.Error("all replicas were asked", err)
	}
}
