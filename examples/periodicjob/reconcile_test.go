// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	ref   = wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "hello"}
	begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func periodicJob() wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": wasmctl.Map{"name": "hello", "namespace": "default", "creationTimestamp": begin},
		"spec": wasmctl.Map{
			"everySeconds": 60, "keep": 2,
			"template": wasmctl.Map{"template": wasmctl.Map{"spec": wasmctl.Map{"restartPolicy": "Never"}}},
		},
	}
}

// starts returns the start times of the Jobs that the module created, in seconds after begin.
func starts(host *guesttest.Host) (list []int64) {
	for _, c := range host.Changes() {
		if c.Op == "api_create" {
			at, _ := time.ParseDuration(strings.TrimPrefix(c.Ref.Name, "hello-") + "s")
			list = append(list, int64(at.Seconds())-begin.Unix())
		}
	}
	return list
}

func equal(t *testing.T, got []int64, want ...int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("Jobs were started at %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("Jobs were started at %v, want %v", got, want)
		}
	}
}

func TestPeriodicJob_StartsOneJobPerPeriod(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	for range 12 { // ten minutes and more, in steps of 55 seconds
		host.Run(reconciler)
		host.Advance(55 * time.Second)
	}
	equal(t, starts(host), 0, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600)
	if got := host.Get(ref).Time("status", "lastStart"); !got.Equal(begin.Add(600 * time.Second)) {
		t.Errorf("last start is %v", got)
	}
	if n := len(host.Events()); n != 11 {
		t.Errorf("%d events", n)
	}
}

func TestPeriodicJob_AsksForTheNextPeriodToTheMillisecond(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.Advance(90*time.Second + 250*time.Millisecond)
	if got := host.Reconcile(reconciler, ref).Action; got != wasmctl.Requeue(29*time.Second+750*time.Millisecond) {
		t.Errorf("action is %v", got)
	}
}

// TestPeriodicJob_MissedPeriodsAreOneJob: a host that was down starts only the Job that is due now.
func TestPeriodicJob_MissedPeriodsAreOneJob(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.Run(reconciler)
	host.Advance(time.Hour + 10*time.Second)
	host.Run(reconciler)
	equal(t, starts(host), 0, 3600)
}

// TestPeriodicJob_InterruptedBeforeTheStatusStartsNoSecondJob: the Job's name contains its time.
func TestPeriodicJob_InterruptedBeforeTheStatusStartsNoSecondJob(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.FailNext("api_apply", wasmctl.Error{Status: 500, Reason: "InternalError"}) // the status
	if host.Reconcile(reconciler, ref).Failure == nil || host.Get(ref).Exists("status", "lastStart") {
		t.Fatal("the status was written")
	}
	host.Advance(10 * time.Second)
	host.Run(reconciler)
	equal(t, starts(host), 0)
	if !host.Get(ref).Time("status", "lastStart").Equal(begin) {
		t.Error("the status was not written after that")
	}
}

func TestPeriodicJob_KeepsTheNewestJobsAndThoseThatRun(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.Run(reconciler)
	first := wasmctl.ObjectRef{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: "hello-1767225600"}
	running := host.Get(first)
	if err := running.Set(1, "status", "active"); err != nil {
		t.Fatal(err)
	}
	host.Add(running)
	deleted := 0
	for range 5 {
		host.Advance(time.Minute)
		host.Run(reconciler)
	}
	for _, c := range host.Changes() {
		if c.Op == "api_delete" {
			deleted++
		}
	}
	if !host.Get(first).Exists() || deleted != 3 { // of five more, two are retained
		t.Errorf("%d were deleted; the one that runs is there: %v", deleted, host.Get(first).Exists())
	}
}

func TestPeriodicJob_SuspendedStartsNothing(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.Run(reconciler)
	suspend := func(yes bool) {
		host.Edit(ref, func(o *wasmctl.Object) {
			if err := o.Set(yes, "spec", "suspend"); err != nil {
				t.Fatal(err)
			}
		})
		host.Run(reconciler)
		host.Advance(5 * time.Minute)
		host.Run(reconciler)
	}
	suspend(true)
	equal(t, starts(host), 0)
	if c, _ := host.Get(ref).Conditions().Get("Ready"); c.Reason != "Suspended" {
		t.Errorf("ready is %+v", c)
	}
	suspend(false)
	equal(t, starts(host), 0, 300, 600)
}

func TestPeriodicJob_WhatCannotWorkWaitsForAChange(t *testing.T) {
	host := guesttest.New(t, periodicJob())
	host.FailNext("api_create", wasmctl.Error{Status: 422, Reason: "Invalid"})
	f := host.Reconcile(reconciler, ref).Failure
	ready, _ := host.Get(ref).Conditions().Get("Ready")
	if f == nil || f.Class != wasmctl.ErrorPermanent || f.Reason != "BadTemplate" || ready.Reason != "StartFailed" {
		t.Errorf("a bad template: %+v, ready %+v", f, ready)
	}
	never := periodicJob()
	never["spec"] = wasmctl.Map{"everySeconds": 0}
	f = guesttest.New(t, never).Reconcile(reconciler, ref).Failure
	if f == nil || f.Class != wasmctl.ErrorPermanent || f.Reason != "BadPeriod" {
		t.Errorf("no period: %+v", f)
	}
}
