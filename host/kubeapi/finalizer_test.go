// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

const finalizer = "kubeapi.wasmctl.dev/ours"

func (d *declarer) finalizers(name string) string {
	d.t.Helper()
	return strings.Trim(fmt.Sprint(at(d.ok(abi.OpAPIGet, d.sprocketRef(name)), "metadata", "finalizers")), "[]")
}

// setFinalizers is what another actor does.
func (d *declarer) setFinalizers(list ...any) {
	d.t.Helper()
	d.ok(abi.OpAPIPatch, with(d.sprocketRef("owner"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": list}}))
}

// TestFinalizer_AddAndRemove: rule 21: the host's part.
func TestFinalizer_AddAndRemove(t *testing.T) {
	for name, others := range map[string][]any{"alone": nil, "after others": {"a.dev/a", "b.dev/b"}} {
		t.Run(name, func(t *testing.T) {
			d := newDeclarer(t)
			if others != nil {
				d.setFinalizers(others...)
				d.renew()
			}
			var reported []string
			ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(w abi.Write) {
				reported = append(reported, fmt.Sprintf("%s %v %v", w.Op, w.Deleted, w.ResourceVersion != ""))
			}})
			updated, err := d.AddFinalizer(ctx, d.owner.Kind, d.owner.Object, finalizer)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSpace(strings.Trim(fmt.Sprint(others), "[]") + " " + finalizer)
			if got := d.finalizers("owner"); got != want {
				t.Errorf("finalizers: %s, want %s", got, want)
			}
			now := d.ok(abi.OpAPIGet, d.sprocketRef("owner"))
			delete(now["metadata"].(map[string]any), "managedFields")
			returned, err := abi.DecodeObject(updated)
			if diff := cmp.Diff(now, returned); diff != "" || err != nil {
				t.Errorf("returned (%v):\n%s", err, diff)
			}
			d.sent()
			if again, err := d.AddFinalizer(ctx, d.owner.Kind, updated, finalizer); err != nil || len(d.sent()) > 0 || !slices.Equal(again, updated) {
				t.Errorf("added twice: %v", err)
			}
			if err := d.RemoveFinalizer(ctx, d.owner.Kind, updated, finalizer); err != nil {
				t.Fatal(err)
			}
			if got := d.finalizers("owner"); got != strings.Trim(fmt.Sprint(others), "[]") && got != "<nil>" {
				t.Errorf("finalizers: %s", got)
			}
			if diff := cmp.Diff([]string{"api_patch false true", "api_patch false true"}, reported); diff != "" {
				t.Error(diff)
			}
			d.renew()
			if err := d.RemoveFinalizer(ctx, d.owner.Kind, d.owner.Object, finalizer); err != nil || len(d.sent()) > 0 {
				t.Errorf("removed twice: %v", err)
			}
		})
	}
}

// TestFinalizer_LostTestsAreConflicts: rule 21: a patch holds only for the list
// as it was seen.
func TestFinalizer_LostTestsAreConflicts(t *testing.T) {
	d := newDeclarer(t)
	add := func() error {
		_, err := d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, finalizer)
		return err
	}
	remove := func() error { return d.RemoveFinalizer(t.Context(), d.owner.Kind, d.owner.Object, finalizer) }
	lost := func(why string, err error, left string) {
		t.Helper()
		failsAs(t, err, abi.ErrorConflict, ReasonLostRace, "changed concurrently")
		if got := d.finalizers("owner"); got != left {
			t.Errorf("%s: finalizers %s, want %s", why, got, left)
		}
	}
	d.setFinalizers("a.dev/a")
	lost("the list was empty", add(), "a.dev/a")
	d.renew()
	d.setFinalizers("a.dev/a", "b.dev/b")
	lost("the list has grown", add(), "a.dev/a b.dev/b")
	d.setFinalizers("a.dev/a", finalizer)
	d.renew()
	d.setFinalizers(finalizer, "a.dev/a")
	lost("the list was turned round", remove(), finalizer+" a.dev/a")
	d.setFinalizers(finalizer)
	lost("the list is shorter", remove(), finalizer)
	d.setFinalizers("a.dev/a", finalizer)
	if err := remove(); err != nil || d.finalizers("owner") != "a.dev/a" {
		t.Errorf("%v, finalizers %s", err, d.finalizers("owner"))
	}
	d.setFinalizers()
	d.ok(abi.OpAPIDelete, d.sprocketRef("owner"))
	if err := remove(); err != nil {
		t.Errorf("an object that is gone: %v", err)
	}
	_, err := d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, "kubeapi.wasmctl.dev/late")
	failsAs(t, err, abi.ErrorTransient, "NotFound", "not found")
	d.newOwner("owner")
	d.setFinalizers("a.dev/a", finalizer)
	lost("another object has the name", remove(), "a.dev/a "+finalizer)
}

// TestFinalizer_OfAnObjectThatIsBeingDeleted: no finalizer is added, and the object disappears with
// its last one.
func TestFinalizer_OfAnObjectThatIsBeingDeleted(t *testing.T) {
	d := newDeclarer(t)
	d.setFinalizers(finalizer)
	d.renew()
	d.ok(abi.OpAPIDelete, d.sprocketRef("owner"))
	_, err := d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, "kubeapi.wasmctl.dev/late")
	failsAs(t, err, abi.ErrorConflict, ReasonLostRace, "no new finalizers can be added if the object is being deleted")
	var reported []abi.Write
	ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(w abi.Write) { reported = append(reported, w) }})
	if err := d.RemoveFinalizer(ctx, d.owner.Kind, d.owner.Object, finalizer); err != nil {
		t.Fatal(err)
	}
	d.fails(404, "", abi.OpAPIGet, d.sprocketRef("owner"))
	if len(reported) != 1 || !reported[0].Deleted || reported[0].UID != d.uid() {
		t.Errorf("told: %+v", reported)
	}
	d.owner = d.newOwner("other")
	_, err = d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, "Not A Name")
	failsAs(t, err, abi.ErrorTransient, "Invalid", "metadata.finalizers")
}

// TestFinalizer_WithoutADomainIsForCustomResources: the API server decides, and
// abi.Manifest.Warnings mentions it.
func TestFinalizer_WithoutADomainIsForCustomResources(t *testing.T) {
	d := newDeclarer(t)
	updated, err := d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, "cleanup")
	if err != nil || d.finalizers("owner") != "cleanup" {
		t.Fatalf("%v, finalizers %s", err, d.finalizers("owner"))
	}
	if err := d.RemoveFinalizer(t.Context(), d.owner.Kind, updated, "cleanup"); err != nil || strings.Contains(d.finalizers("owner"), "cleanup") {
		t.Errorf("%v, finalizers %s", err, d.finalizers("owner"))
	}
	made := d.ok(abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": d.ns},
	}})
	builtIn, err := d.cfg.Resolver.Resolve(t.Context(), "configmaps")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.AddFinalizer(t.Context(), builtIn, msg(t, made), "cleanup")
	failsAs(t, err, abi.ErrorTransient, "Invalid", `"cleanup": name is neither a standard finalizer name nor is it fully qualified`)
}

// TestFinalizer_ActorsNeverRemoveEachOthersEntry: rule 21: several actors add and
// remove their own finalizer of one object at once, each as often as its tests
// hold; an entry that its actor has added is there until that actor removes it.
func TestFinalizer_ActorsNeverRemoveEachOthersEntry(t *testing.T) {
	d := newDeclarer(t)
	var wg sync.WaitGroup
	for actor := range 4 {
		mine := fmt.Sprintf("kubeapi.wasmctl.dev/actor-%d", actor)
		wg.Go(func() {
			for range 8 {
				seen := d.retry(func(object []byte) (err error) {
					_, err = d.AddFinalizer(t.Context(), d.owner.Kind, object, mine)
					return err
				})
				p, err := unpack(d.see())
				if err != nil || !slices.Contains(p.Metadata.Finalizers, mine) {
					t.Errorf("%s is not there after it was added to %v: %v", mine, seen, p.Metadata.Finalizers)
					return
				}
				d.retry(func(object []byte) error { return d.RemoveFinalizer(t.Context(), d.owner.Kind, object, mine) })
			}
		})
	}
	wg.Wait()
	if got := d.finalizers("owner"); got != "<nil>" && got != "" {
		t.Errorf("left: %s", got)
	}
}

// see reads the owner as it is now.
func (d *declarer) see() []byte {
	return d.Call(context.Background(), abi.OpAPIGet, msg(d.t, d.sprocketRef("owner"))).Body
}

// retry retries until there is no conflict, and returns the last result.
func (d *declarer) retry(try func(object []byte) error) []string {
	for {
		object := d.see()
		err := try(object)
		var result *abi.ResultError
		if err == nil {
			p, _ := unpack(object)
			return p.Metadata.Finalizers
		}
		if !errors.As(err, &result) || result.Class != abi.ErrorConflict {
			d.t.Errorf("error: %v", err)
			return nil
		}
	}
}
