// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestPrune_DeletesWhatIsDeclaredNoLonger(t *testing.T) {
	d := newDeclarer(t)
	r := d.result(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))
	d.declare(r)
	r.Apply = r.Apply[1:2]
	if sent := d.declare(r); len(sent) > 0 || d.names() != "a,b,c" {
		t.Errorf("without prune: sent %v, left %s", sent, d.names())
	}
	r.Prune = true
	d.declare(r)
	if d.names() != "b" {
		t.Errorf("left %s", d.names())
	}
	d.declare(&abi.Declared{Prune: true})
	if d.names() != "" {
		t.Errorf("an empty list leaves %s", d.names())
	}
}

// TestPrune_LeavesWhatIsNotControlledByTheOwner: objects that others control, that the owner merely
// owns, that have no owner, or that belong to an earlier object with the owner's name.
func TestPrune_LeavesWhatIsNotControlledByTheOwner(t *testing.T) {
	d := newDeclarer(t)
	owns := func(name string, reference map[string]any) {
		d.ok(abi.OpAPICreate, map[string]any{"object": inMeta(d.cm(name, nil), "ownerReferences", []any{reference})})
	}
	o, err := d.owner.read()
	if err != nil {
		t.Fatal(err)
	}
	d.ok(abi.OpAPICreate, map[string]any{"object": d.cm("nobodys", nil)})
	owns("theirs", d.reference("theirs"))
	owns("owned", with(o.reference(), "controller", false))
	owns("ours", o.reference())
	d.cache.refresh()
	if sent := d.declare(&abi.Declared{Prune: true}); fmt.Sprint(sent) != "[DELETE ours]" || d.names() != "nobodys,owned,theirs" {
		t.Errorf("sent %v, left %s", sent, d.names())
	}
}

// TestPrune_TheCacheMayBeBehind: preconditions check the cache's information, and the object is
// read again if they do not hold.
func TestPrune_TheCacheMayBeBehind(t *testing.T) {
	d := newDeclarer(t)
	meta := func(name string) any { return at(d.ok(abi.OpAPIGet, d.ref(name)), "metadata") }
	d.declare(d.result(configMap("changed", "1"), configMap("given", "1"), configMap("anew", "1"), configMap("gone", "1"), configMap("released", "1")))
	theirs := d.reference("theirs")
	merge := func(name string, change map[string]any) {
		d.ok(abi.OpAPIPatch, with(d.ref(name), "patchType", "merge", "patch", map[string]any{"metadata": change}))
	}
	merge("changed", map[string]any{"labels": map[string]any{"l": "1"}})
	merge("given", map[string]any{"ownerReferences": []any{theirs}})
	merge("released", map[string]any{"ownerReferences": []any{}})
	for _, name := range []string{"gone", "anew"} {
		d.ok(abi.OpAPIDelete, d.ref(name))
	}
	o, _ := d.owner.read()
	d.ok(abi.OpAPICreate, map[string]any{"object": inMeta(d.cm("anew", nil), "ownerReferences", []any{o.reference()})})
	before := fmt.Sprint(meta("given"), meta("anew"), meta("released"))
	d.declare(&abi.Declared{Prune: true})
	if d.names() != "anew,given,released" || fmt.Sprint(meta("given"), meta("anew"), meta("released")) != before {
		t.Errorf("left %s", d.names())
	}
	d.declare(&abi.Declared{Prune: true}) // the cache knows the new one now
	if d.names() != "given,released" {
		t.Errorf("left %s", d.names())
	}
}

// TestPrune_DeletesOnce an object that its finalizers hold.
func TestPrune_DeletesOnce(t *testing.T) {
	d := newDeclarer(t)
	d.declare(d.result(inMeta(configMap("a", "1"), "finalizers", []any{"kubeapi.wasmctl.dev/test"})))
	for i, want := range []string{"[DELETE a]", "[]", "[]"} {
		if sent := d.declare(&abi.Declared{Prune: true}); fmt.Sprint(sent) != want {
			t.Errorf("%d: sent %v, want %s", i, sent, want)
		}
	}
	if got := d.ok(abi.OpAPIGet, d.ref("a")); at(got, "metadata", "deletionTimestamp") == nil {
		t.Error("it is not being deleted")
	}
	d.ok(abi.OpAPIPatch, with(d.ref("a"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": nil}}))
}

// TestPrune_NeedsTheRightToDelete, the module's and ours; nothing is deleted
// unless all may be.
func TestPrune_NeedsTheRightToDelete(t *testing.T) {
	d := newDeclarer(t)
	d.declare(d.result(configMap("a", "1"), configMap("b", "1")))
	d.cfg.Policy = NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"delete"}, Names: []string{"a"}}})
	e, sent := d.refuse(abi.ErrorPermanent, "Denied", `{"group":"","resource":"configmaps","verbs":["delete"],"namespaces":["`+d.ns+`"]}`, &abi.Declared{Prune: true})
	if e.Step != StepPrune || e.Key.Name != "b" || e.Index != -1 || len(sent) > 0 || !strings.HasPrefix(e.Error(), "object[configmaps "+d.ns+"/b]: prune: ") {
		t.Errorf("%v, sent %v", e, sent)
	}
	poor := newSession(t, devclustertest.Limited(t, devclustertest.Shared(t), d.ns, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
	}), d.ns)
	poor.cfg.Children = d.cache
	err := poor.Declare(t.Context(), d.owner, &abi.Declared{Prune: true, Status: msg(t, map[string]any{"size": 1})})
	failsAs(t, err, abi.ErrorTransient, "Forbidden", "cannot delete resource")
	d.cfg.Policy = everything()
	if got := d.ok(abi.OpAPIGet, d.sprocketRef("owner")); d.names() != "a,b" || got["status"] != nil {
		t.Errorf("left %s, status %v", d.names(), got["status"])
	}
}

// TestPrune_HammerNeverDeletesWhatIsNotOurs: objects of four names change hands
// all the time, by deletion and creation, while the owner prunes with a cache
// that is always behind. Whatever belongs to the other one survives.
func TestPrune_HammerNeverDeletesWhatIsNotOurs(t *testing.T) {
	d := newDeclarer(t)
	o, err := d.owner.read()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := o.reference(), d.reference("theirs")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { changeHands(t, d, fmt.Sprintf("name%d", i), ours, theirs) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	pruned := 0
	ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(abi.Write) { pruned++ }})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := d.Declare(ctx, d.owner, &abi.Declared{Prune: true}); err != nil {
			var e *WriteError
			if !errors.As(err, &e) || e.Class != abi.ErrorConflict {
				t.Fatal(err)
			}
		}
		d.cache.refresh()
	}
	if pruned < 10 {
		t.Errorf("pruned %d: this shows little", pruned)
	}
}

// changeHands makes an object ours, so that it is pruned eventually, or deleted
// by another client; then theirs, and checks that it stays.
func changeHands(t *testing.T, d *declarer, name string, ours, theirs map[string]any) {
	r := rand.New(rand.NewPCG(7, uint64(len(name))))
	ref := msg(t, d.ref(name))
	make := func(reference map[string]any) (uid any) {
		for t.Context().Err() == nil {
			d.Call(t.Context(), abi.OpAPIDelete, ref)
			made := d.Call(t.Context(), abi.OpAPICreate, msg(t, map[string]any{"object": inMeta(d.cm(name, nil), "ownerReferences", []any{reference})}))
			if made.Status == abi.StatusOK {
				object, _ := abi.DecodeObject(made.Body)
				return at(object, "metadata", "uid")
			}
		}
		return nil
	}
	for round := range 25 {
		make(ours)
		for i := 0; i < r.IntN(6) || round%5 == 0; i++ { // each fifth is left to the pruning
			change := map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": fmt.Sprint(i)}}}
			if d.Call(t.Context(), abi.OpAPIPatch, msg(t, with(d.ref(name), "patchType", "merge", "patch", change))).Status == 404 {
				break
			}
			if i > 20 { // let it catch up
				d.cache.refresh()
			}
		}
		uid := make(theirs)
		for range 3 {
			got, _ := abi.DecodeObject(d.Call(t.Context(), abi.OpAPIGet, ref).Body)
			if at(got, "metadata", "uid") != uid {
				t.Errorf("%s was deleted while it was theirs: %v", name, got)
				return
			}
		}
	}
}
