// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var schedules = schema.GroupVersionResource{Group: "batch.example.dev", Version: "v1", Resource: "cronjobs"}

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// checkCronJob: the runs of a CronJob at a time that it has missed, under each
// concurrency policy; deadlines, histories and invalid schedules. There is no controller
// of Jobs: the test ends them. Nothing depends on the time of a step: the schedules have
// one time each year, and the last one was years ago, so each is due once. Webhooks set
// defaults, and refuse invalid schedules and names.
func checkCronJob(k *kubebuilder) {
	k.hooks = newHooks(k)
	k.start(asItIs, true)
	k.register()
	const yearly = "CRON_TZ=Europe/Berlin 0 6 1 1 *"
	due := lastNewYear(k)
	of := []schema.GroupVersionResource{schedules, jobs}
	makes := map[string]string{
		"allow": "", "forbid": "concurrencyPolicy: Forbid", "replace": "concurrencyPolicy: Replace",
		"late": "startingDeadlineSeconds: 10", "history": "successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 2",
	}
	k.denied("an invalid schedule and a long name", schedules, map[string]any{
		"apiVersion": "batch.example.dev/v1", "kind": "CronJob", "metadata": map[string]any{"name": strings.Repeat("a", 60)},
		"spec": map[string]any{"schedule": "once in a while", "jobTemplate": map[string]any{}},
	})
	k.sides[1].await("defaults", func() bool { return k.sides[0].defaults() && k.sides[1].defaults() })
	k.step("CronJobs", of, func(s *side) {
		for _, name := range slices.Sorted(maps.Keys(makes)) {
			s.cronJob(name, yearly, makes[name])
		}
		s.cronJob("always", "* * * * *", "")
	}, func(all objects) bool {
		for name := range makes {
			if !all.scheduled(name, "Suspended") {
				return false
			}
		}
		return all.scheduled("always", "Suspended") && all.reads("v1/cronjobs/allow", "3", "spec", "successfulJobsHistoryLimit") &&
			all.reads("v1/cronjobs/allow", "true", "spec", "jobTemplate", "future", "unknown")
	})
	k.step("times years ago", of, func(s *side) {
		for _, name := range []string{"allow", "forbid", "replace", "late", "always"} {
			s.merge(schedules, name, `{"status":{"lastScheduleTime":"2020-06-01T00:00:00Z"}}`, "status")
		}
		s.job("forbid-old", "forbid")
		s.job("replace-old", "replace")
	}, func(all objects) bool {
		return all.active("forbid", "forbid-old") && all.active("replace", "replace-old") && all.active("allow")
	})
	resume := func(name string) func(s *side) {
		return func(s *side) { s.merge(schedules, name, `{"spec":{"suspend":false}}`) }
	}
	k.step("a time that was missed", of, resume("allow"), func(all objects) bool { return all.active("allow", "allow-"+due) })
	k.step("its Job ends", of, func(s *side) { s.end("allow-"+due, complete, 0) }, func(all objects) bool { return all.active("allow") })
	k.step("Forbid, with a Job", of, resume("forbid"), func(all objects) bool { return all.scheduled("forbid", "Waiting") })
	k.step("its Job fails", of, func(s *side) { s.end("forbid-old", failed, 0) }, func(all objects) bool { return all.active("forbid", "forbid-"+due) })
	k.step("Replace, with a Job", of, resume("replace"), func(all objects) bool {
		return all.active("replace", "replace-"+due) && all["v1/jobs/replace-old"] == nil
	})
	k.step("a deadline that is over", of, resume("late"), func(all objects) bool { return all.scheduled("late", "Waiting") && all.active("late") })
	k.step("times that cannot be counted", of, resume("always"), func(all objects) bool { return all.scheduled("always", "InvalidSchedule") })
	k.step("a history", of, func(s *side) {
		for i := range 4 {
			s.job(fmt.Sprint("good-", i), "history")
			s.end(fmt.Sprint("good-", i), complete, i)
			s.job(fmt.Sprint("bad-", i), "history")
			s.end(fmt.Sprint("bad-", i), failed, i)
		}
	}, func(all objects) bool {
		var left []string
		for key := range all {
			if name, ok := strings.CutPrefix(key, "v1/jobs/"); ok && (strings.HasPrefix(name, "good-") || strings.HasPrefix(name, "bad-")) {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		return slices.Equal(left, []string{"bad-2", "bad-3", "good-3"})
	})
	for _, s := range k.sides {
		s.cronJob("live", "@every 1s", "concurrencyPolicy: Forbid, startingDeadlineSeconds: 60")
		resume("live")(s)
		s.await("a Job at its time", func() bool { return len(s.objects(of).actives("live")) == 1 })
	}
	k.step("deletions", of, func(s *side) {
		if err := s.of(schedules).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			s.Fatal(err)
		}
	}, func(all objects) bool { return len(all) == 0 })
}

// lastNewYear returns the last time at which the yearly schedule was due, in the form of Job names.
func lastNewYear(k *kubebuilder) string {
	k.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		k.Fatal(err)
	}
	now := time.Now().In(berlin)
	at := time.Date(now.Year(), 1, 1, 6, 0, 0, 0, berlin)
	if at.After(now) {
		at = at.AddDate(-1, 0, 0)
	}
	return strconv.FormatInt(at.Unix(), 10)
}

// defaults reports whether the webhooks set defaults in a new CronJob.
func (s *side) defaults() bool {
	s.Helper()
	got, err := s.of(schedules).Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch.example.dev/v1", "kind": "CronJob", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"schedule": "@hourly", "jobTemplate": map[string]any{}},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false
	}
	_, found, err := unstructured.NestedInt64(got.Object, "spec", "failedJobsHistoryLimit")
	return found && err == nil
}

const podTemplate = "template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}"

// cronJob creates a CronJob that is suspended.
func (s *side) cronJob(name, schedule, more string) {
	s.Helper()
	if more != "" {
		more += ", "
	}
	s.apply(fmt.Sprintf("apiVersion: batch.example.dev/v1\nkind: CronJob\nmetadata: {name: %s}\n"+
		"spec: {schedule: %q, suspend: true, %sjobTemplate: {metadata: {labels: {of: %s}}, future: {unknown: true}, spec: {%s}}}\n", name, schedule, more, name, podTemplate))
}

// job creates a Job that appears to have been started by a CronJob years ago.
func (s *side) job(name, owner string) {
	s.Helper()
	o, err := s.of(schedules).Get(s.Context(), owner, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.apply(fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {batch.example.dev/scheduled-at: '2020-06-01T00:00:00Z'}\n"+
		"  ownerReferences: [{apiVersion: batch.example.dev/v1, kind: CronJob, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]\n"+
		"spec: {%s}\n", name, owner, o.GetUID(), podTemplate))
}

// How a Job can end.
const (
	complete = `"succeeded":1,"completionTime":"2024-01-01T00:%02[1]d:30Z","conditions":[%[2]s"SuccessCriteriaMet"},%[2]s"Complete"}]`
	failed   = `"failed":1,"conditions":[%[2]s"FailureTarget"},%[2]s"Failed"}]`
)

// end ends a Job that was started in this minute.
func (s *side) end(name, how string, minute int) {
	s.Helper()
	status := fmt.Sprintf(`"startTime":"2024-01-01T00:%02[1]d:00Z",`+how, minute, `{"status":"True","type":`)
	s.merge(jobs, name, `{"status":{`+status+`}}`, "status")
}

// scheduled reports whether the condition of a CronJob has that reason.
func (all objects) scheduled(name, reason string) bool {
	return all.condition("v1/cronjobs/"+name, "Scheduled", reason)
}

// active reports whether the status of a CronJob, which is up to date, has these
// Jobs.
func (all objects) active(name string, want ...string) bool {
	return slices.Equal(all.actives(name), want)
}

// actives are the Jobs in the status of a CronJob.
func (all objects) actives(name string) (names []string) {
	list, _, _ := unstructured.NestedSlice(all["v1/cronjobs/"+name], "status", "active")
	for _, item := range list {
		names = append(names, fmt.Sprint(item.(map[string]any)["name"])) //nolint:forcetypeassert // as the API server has it
	}
	return names
}
