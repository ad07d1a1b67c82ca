// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var mirrorRef = wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Name: "pull"}

func namespace(name string, labels wasmctl.Map) wasmctl.Map {
	return wasmctl.Map{"apiVersion": "v1", "kind": "Namespace", "metadata": wasmctl.Map{"name": name, "labels": labels}}
}

func secret(namespace, token string) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": wasmctl.Map{"name": "token", "namespace": namespace}, "data": wasmctl.Map{"token": []byte(token)},
	}
}

// cluster has a mirror of default/token for the namespaces with pull=yes: a.
func cluster(t *testing.T) *guesttest.Host {
	t.Helper()
	host := guesttest.New(t)
	host.ClusterScoped(kind)
	host.Add(
		namespace("default", wasmctl.Map{"pull": "yes"}), namespace("a", wasmctl.Map{"pull": "yes"}), namespace("b", wasmctl.Map{}),
		secret("default", "one"),
		wasmctl.Map{
			"apiVersion": apiVersion, "kind": kind, "metadata": wasmctl.Map{"name": "pull"},
			"spec": wasmctl.Map{"source": wasmctl.Map{"namespace": "default", "name": "token"}, "namespaces": "pull=yes"},
		},
	)
	host.Run(reconciler)
	return host
}

func token(host *guesttest.Host, namespace string) string {
	var b []byte
	if err := host.Get(secretIn(namespace, "token")).Decode(&b, "data", "token"); err != nil {
		return err.Error()
	}
	return string(b)
}

func want(t *testing.T, host *guesttest.Host, a, b, reason string) {
	t.Helper()
	ready, _ := host.Get(mirrorRef).Conditions().Get("Ready")
	if token(host, "a") != a || token(host, "b") != b || ready.Reason != reason {
		t.Errorf("copies %q and %q, ready %+v; want %q, %q, %s", token(host, "a"), token(host, "b"), ready, a, b, reason)
	}
}

func TestMirror_FollowsTheSourceAndTheLabels(t *testing.T) {
	host := cluster(t)
	want(t, host, "one", "", "Mirrored")
	if c, ok := host.Get(secretIn("a", "token")).Controller(); !ok || c.Name != "pull" {
		t.Errorf("controller of the copy is %+v", c)
	}

	host.Add(secret("default", "two"))
	host.Run(reconciler)
	want(t, host, "two", "", "Mirrored")

	host.Add(namespace("b", wasmctl.Map{"pull": "yes"}), namespace("a", wasmctl.Map{}))
	host.Run(reconciler)
	want(t, host, "", "two", "Mirrored")
	if n := host.Get(mirrorRef).Int("status", "copies"); n != 1 {
		t.Errorf("status says %d copies", n)
	}

	host.Remove(secretIn("b", "token"))
	host.Run(reconciler)
	want(t, host, "", "two", "Mirrored")

	host.Delete(mirrorRef)
	host.Run(reconciler)
	if token(host, "b") != "" || token(host, "default") != "two" {
		t.Error("after the mirror was deleted, copies are there or the source is not")
	}
}

func TestMirror_KeepsTheCopiesWhileTheSourceIsMissing(t *testing.T) {
	host := cluster(t)
	host.Remove(secretIn("default", "token"))
	host.Run(reconciler)
	want(t, host, "one", "", "SourceMissing")
	host.Add(secret("default", "two"))
	host.Run(reconciler)
	want(t, host, "two", "", "Mirrored")
}

func TestMirror_LeavesSecretsOfOthersAlone(t *testing.T) {
	host := cluster(t)
	host.Add(secret("b", "theirs"), namespace("b", wasmctl.Map{"pull": "yes"}))
	host.Run(reconciler)
	want(t, host, "one", "theirs", "NameTaken")
	host.Delete(secretIn("b", "token"))
	host.Run(reconciler)
	want(t, host, "one", "one", "Mirrored")
}

func TestMirror_DoesNotTouchNamespacesThatGo(t *testing.T) {
	host := cluster(t)
	gone := namespace("b", wasmctl.Map{"pull": "yes"})
	gone["metadata"].(wasmctl.Map)["deletionTimestamp"] = "2026-01-01T00:00:00Z" //nolint:forcetypeassert // it is made above
	host.Add(gone)
	host.Run(reconciler)
	want(t, host, "one", "", "Mirrored")
}

func TestMirror_ARunWithoutAChangeWritesNothing(t *testing.T) {
	host := cluster(t)
	before := len(host.Changes())
	host.Advance(time.Hour)
	host.Reconcile(reconciler, mirrorRef)
	if changes := host.Changes()[before:]; len(changes) != 0 {
		t.Errorf("it changed %+v", changes)
	}
}

func TestMapper_WaitsForTheCache(t *testing.T) {
	host := cluster(t)
	s, err := wasmctl.NewObject(secret("default", "x"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := host.Map(reconciler, wasmctl.WatchEvent{New: s})
	if err != nil || len(keys) != 1 || keys[0] != mirrorRef.Key() {
		t.Errorf("mapped to %v, %v", keys, err)
	}
	host.NotSynced(kind)
	if _, err := host.Map(reconciler, wasmctl.WatchEvent{New: s}); err == nil {
		t.Error("a cache that is not filled mapped to nothing, and the change would be lost")
	}
}
