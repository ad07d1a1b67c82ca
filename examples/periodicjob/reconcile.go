// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

var errPeriod = errors.New("spec.everySeconds: must be above 0")

// reconcile starts the Job that is due, deletes old ones, and requests a call for the next one.
func reconcile(ctx *wasmctl.Context, pj wasmctl.Object) (wasmctl.Action, error) {
	if pj.IsDeleting() {
		return wasmctl.AwaitChange(), nil // the garbage collector deletes the Jobs
	}
	s, now := scheduleOf(pj), ctx.Now()
	if s.period <= 0 {
		return wasmctl.AwaitChange(), wasmctl.WithReason(wasmctl.Permanent(errPeriod), "BadPeriod")
	}
	last, due := pj.Time("status", "lastStart"), s.last(now)
	if pj.Bool("spec", "suspend") {
		return wasmctl.AwaitChange().Status(status(ctx, pj, last, condition{wasmctl.ConditionFalse, "Suspended", ""})), nil
	}
	if last.Before(due) {
		if err := startJob(ctx, pj, due); err != nil {
			return wasmctl.AwaitChange().Status(status(ctx, pj, last, condition{wasmctl.ConditionFalse, "StartFailed", err.Error()})), err
		}
	}
	if err := deleteOld(ctx, pj); err != nil {
		return wasmctl.AwaitChange(), err
	}
	return wasmctl.Requeue(s.next(now).Sub(now)).Status(status(ctx, pj, due, condition{wasmctl.ConditionTrue, "Scheduled", ""})), nil
}

// startJob creates the Job for a time. Its name contains the time, so a run after an interrupted
// one finds the existing Job: there are never two Jobs for one time.
func startJob(ctx *wasmctl.Context, pj wasmctl.Object, due time.Time) error {
	job := wasmctl.BuildObject(wasmctl.ObjectRef{
		APIVersion: "batch/v1", Kind: "Job", Namespace: pj.Namespace(), Name: pj.Name() + "-" + strconv.FormatInt(due.Unix(), 10),
	}).Controller(pj).End().SetValue("spec", pj.At("spec", "template"))
	made, err := ctx.Client().Create(job, wasmctl.WriteOptions{})
	switch {
	case wasmctl.IsAlreadyExists(err):
		return nil
	case wasmctl.IsInvalid(err):
		return wasmctl.WithReason(wasmctl.Permanent(err), "BadTemplate") // only another template can help
	case err != nil:
		return err
	}
	ctx.Event(wasmctl.EventNormal, "Started", made.Name())
	return nil
}

// deleteOld deletes all Jobs except the newest and the active ones.
func deleteOld(ctx *wasmctl.Context, pj wasmctl.Object) error {
	var done []wasmctl.Object
	all := wasmctl.ObjectRef{APIVersion: "batch/v1", Kind: "Job", Namespace: pj.Namespace()}
	for job, err := range ctx.Cache().All(all, wasmctl.CacheListOptions{Owner: pj.UID()}) {
		if err != nil {
			return err
		}
		if job.IsControlledBy(pj) && !job.IsDeleting() && job.Int("status", "active") == 0 {
			done = append(done, job)
		}
	}
	slices.SortFunc(done, func(a, b wasmctl.Object) int {
		if c := b.CreationTimestamp().Compare(a.CreationTimestamp()); c != 0 {
			return c
		}
		return strings.Compare(b.Name(), a.Name())
	})
	keep := max(int(pj.Int("spec", "keep")), 1)
	for i := keep; i < len(done); i++ {
		err := ctx.Client().Delete(done[i].Ref(), wasmctl.DeleteOptions{
			PropagationPolicy: "Background", Preconditions: wasmctl.Preconditions{UID: done[i].UID()},
		})
		if err != nil && !wasmctl.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// condition is the desired Ready condition.
type condition struct{ status, reason, message string }

func status(ctx *wasmctl.Context, pj wasmctl.Object, last time.Time, ready condition) *wasmctl.Builder {
	conditions := pj.Conditions()
	conditions.Set(wasmctl.Condition{
		Type: "Ready", Status: ready.status, Reason: ready.reason, Message: ready.message, ObservedGeneration: pj.Generation(),
	}, ctx.Now())
	b := wasmctl.Build().SetInt("observedGeneration", pj.Generation()).SetValue("conditions", conditions)
	if !last.IsZero() {
		b.SetValue("lastStart", last)
	}
	return b
}
