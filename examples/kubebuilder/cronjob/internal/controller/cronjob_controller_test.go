// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	kbatch "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	batchv1 "example.dev/cronjob/api/v1"
)

// at is a Clock that stands still.
type at string

func (a at) Now() time.Time {
	t, err := time.Parse(time.RFC3339, string(a))
	if err != nil {
		panic(err)
	}
	return t
}

// start runs the controller for one CronJob, created on the first of May at noon in Berlin, and returns its Jobs.
func start(t *testing.T, spec batchv1.CronJobSpec, now at) (ctrl.Result, []kbatch.Job) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := batchv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	created := metav1.NewTime(at("2026-05-01T10:00:00Z").Now())
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "1", CreationTimestamp: created}, Spec: spec}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cronJob).WithStatusSubresource(cronJob).
		WithIndex(&kbatch.Job{}, jobOwnerKey, ownerOf).Build()
	r := &CronJobReconciler{Client: c, Scheme: scheme, Clock: now}
	res, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cronJob)})
	if err != nil {
		t.Fatal(err)
	}
	var list kbatch.JobList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return res, list.Items
}

// TestReconcile_StartsTheLastJobThatIsDue: at the time in the zone of the schedule, within the deadline; then it waits
// for the next time.
func TestReconcile_StartsTheLastJobThatIsDue(t *testing.T) {
	seconds := int64(60)
	for name, tc := range map[string]struct {
		now      at
		deadline *int64
		job      string
		next     time.Duration
	}{
		"before":            {"2026-05-02T03:59:00Z", nil, "", time.Minute},
		"on time":           {"2026-05-02T04:00:00Z", nil, "a-1777694400", 24 * time.Hour},
		"days later":        {"2026-05-04T04:30:00Z", nil, "a-1777867200", 24*time.Hour - 30*time.Minute},
		"within a deadline": {"2026-05-02T04:00:59Z", &seconds, "a-1777694400", 24*time.Hour - 59*time.Second},
		"too late":          {"2026-05-02T04:01:01Z", &seconds, "", 24*time.Hour - 61*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			spec := batchv1.CronJobSpec{Schedule: "CRON_TZ=Europe/Berlin 0 6 * * *", StartingDeadlineSeconds: tc.deadline}
			res, jobs := start(t, spec, tc.now)
			if res.RequeueAfter != tc.next {
				t.Errorf("next in %v, want %v", res.RequeueAfter, tc.next)
			}
			if len(jobs) > 1 || (tc.job != "") != (len(jobs) == 1) || tc.job != "" && jobs[0].Name != tc.job {
				t.Errorf("Jobs: %+v, want %q", jobs, tc.job)
			}
		})
	}
}

// TestReconcile_StartsNothingWithoutATime: the next change causes the next run.
func TestReconcile_StartsNothingWithoutATime(t *testing.T) {
	yes := true
	for name, spec := range map[string]batchv1.CronJobSpec{
		"suspended":       {Schedule: "@hourly", Suspend: &yes},
		"no schedule":     {Schedule: "sometimes"},
		"never":           {Schedule: "0 0 30 2 *"},
		"too many missed": {Schedule: "* * * * *"},
	} {
		t.Run(name, func(t *testing.T) {
			if res, jobs := start(t, spec, "2026-05-03T00:00:00Z"); len(jobs) > 0 || res != (ctrl.Result{}) {
				t.Errorf("%+v, Jobs %+v", res, jobs)
			}
		})
	}
}
