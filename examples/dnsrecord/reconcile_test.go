// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var web = wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "web"}

func record(name, hostname, address string) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": apiVersion, "kind": kind, "metadata": wasmctl.Map{"name": name, "namespace": "default"},
		"spec": wasmctl.Map{"zone": "example.com", "hostname": hostname, "address": address},
	}
}

func zone(name string, data wasmctl.Map) wasmctl.Map {
	return wasmctl.Map{"apiVersion": "v1", "kind": "ConfigMap", "metadata": wasmctl.Map{"name": name, "namespace": zones}, "data": data}
}

func start(t *testing.T) *guesttest.Host {
	t.Helper()
	host := guesttest.New(t, zone("example.com", wasmctl.Map{"mail": "192.0.2.9 default/mail/1"}), record("web", "www", "192.0.2.1"))
	host.Run(reconciler)
	return host
}

// entries returns the hostnames and addresses of a zone.
func entries(host *guesttest.Host, zone string) string {
	var list []string
	for hostname, v := range host.Get(zoneRef(zone)).Entries("data") {
		address, _, _ := strings.Cut(v.String(), " ")
		list = append(list, hostname+"="+address)
	}
	return strings.Join(list, " ")
}

func want(t *testing.T, host *guesttest.Host, entriesWant, reason string) {
	t.Helper()
	ready, _ := host.Get(web).Conditions().Get("Ready")
	if got := entries(host, "example.com"); got != entriesWant || ready.Reason != reason {
		t.Errorf("entries %q, ready %+v; want %q, %s", got, ready, entriesWant, reason)
	}
}

func edit(t *testing.T, host *guesttest.Host, value string, path ...string) {
	t.Helper()
	host.Edit(web, func(o *wasmctl.Object) {
		if err := o.Set(value, path...); err != nil {
			t.Fatal(err)
		}
	})
	host.Run(reconciler)
}

func TestRecord_IsPublishedAndFollowsTheSpec(t *testing.T) {
	host := start(t)
	want(t, host, "mail=192.0.2.9 www=192.0.2.1", "Published")
	edit(t, host, "192.0.2.2", "spec", "address")
	want(t, host, "mail=192.0.2.9 www=192.0.2.2", "Published")
	edit(t, host, "shop", "spec", "hostname")
	want(t, host, "mail=192.0.2.9 shop=192.0.2.2", "Published")

	host.Add(zone("example.org", nil))
	edit(t, host, "example.org", "spec", "zone")
	want(t, host, "mail=192.0.2.9", "Published")
	if got := entries(host, "example.org"); got != "shop=192.0.2.2" {
		t.Errorf("the other zone has %q", got)
	}
}

// TestRecord_IsCleanedUpBeforeItGoes: while the zone cannot be changed, the record remains.
func TestRecord_IsCleanedUpBeforeItGoes(t *testing.T) {
	host := start(t)
	if got := host.Get(web).Strings("metadata", "finalizers"); len(got) != 1 {
		t.Fatalf("finalizers are %v", got)
	}
	host.FailNext("api_patch", wasmctl.Error{Status: 503, Reason: "ServiceUnavailable"})
	host.Delete(web)
	host.Run(reconciler)
	if !host.Get(web).Exists() {
		t.Error("the record is gone and its entry is not")
	}
	want(t, host, "mail=192.0.2.9 www=192.0.2.1", "Published")
	host.Advance(time.Minute)
	host.Run(reconciler)
	if host.Get(web).Exists() || entries(host, "example.com") != "mail=192.0.2.9" {
		t.Errorf("entries are %q", entries(host, "example.com"))
	}
}

func TestRecord_WhoseZoneIsGoneCanGo(t *testing.T) {
	host := start(t)
	host.Remove(zoneRef("example.com"))
	host.Delete(web)
	host.Run(reconciler)
	if host.Get(web).Exists() {
		t.Error("the record waits for a zone that will not come back")
	}
}

// TestRecord_InterruptedAtAnyCallLosesNoEntry stops the module at each of its calls in turn, edits the hostname, and
// looks for orphaned entries.
func TestRecord_InterruptedAtAnyCallLosesNoEntry(t *testing.T) {
	for _, op := range []string{"api_get", "api_patch", "api_apply"} {
		for nth := range 3 {
			host := guesttest.New(t, zone("example.com", nil), record("web", "www", "192.0.2.1"))
			host.Run(reconciler)
			for range nth {
				host.Advance(time.Minute)
				edit(t, host, "a", "spec", "hostname")
			}
			host.FailNext(op, wasmctl.Error{Status: 500, Reason: "InternalError"})
			edit(t, host, "b", "spec", "hostname")
			edit(t, host, "c", "spec", "hostname")
			host.Advance(time.Minute)
			host.Run(reconciler)
			want(t, host, "c=192.0.2.1", "Published")
		}
	}
}

func TestRecord_DoesNotTakeANameThatIsTaken(t *testing.T) {
	host := start(t)
	edit(t, host, "mail", "spec", "hostname")
	want(t, host, "mail=192.0.2.9", "Failed")
	runs := host.Run(reconciler)
	host.Delete(web)
	host.Run(reconciler)
	if len(runs) != 0 || host.Get(web).Exists() || entries(host, "example.com") != "mail=192.0.2.9" {
		t.Errorf("after it was deleted: entries %q", entries(host, "example.com"))
	}
}

// TestRecord_TwoThatWantOneNameDoNotBothGetIt: the zone is changed between the read and the write.
func TestRecord_TwoThatWantOneNameDoNotBothGetIt(t *testing.T) {
	host := start(t)
	host.FailNext("api_patch", wasmctl.Error{Status: 409, Reason: "Conflict"})
	host.Edit(web, func(o *wasmctl.Object) {
		if err := o.Set("192.0.2.3", "spec", "address"); err != nil {
			t.Fatal(err)
		}
	})
	runs := host.Run(reconciler)
	if f := runs[0].Failure; f == nil || f.Class != wasmctl.ErrorConflict {
		t.Errorf("run ended with %+v", f)
	}
	host.Advance(time.Minute)
	host.Run(reconciler)
	want(t, host, "mail=192.0.2.9 www=192.0.2.3", "Published")
}

func TestRecord_ARunWithoutAChangeWritesNothing(t *testing.T) {
	host := start(t)
	before := len(host.Changes())
	host.Advance(time.Hour)
	host.Reconcile(reconciler, web)
	if changes := host.Changes()[before:]; len(changes) != 0 {
		t.Errorf("it changed %+v", changes)
	}
}
