// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var backupsV1 = schema.GroupVersionResource{Group: "storage.example.dev", Version: "v1", Resource: "backups"}

var backupsV2 = schema.GroupVersionResource{Group: "storage.example.dev", Version: "v2", Resource: "backups"}

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

// checkMultiVersion: users write both versions of a kind, and the controller reads one.
// The binary and the module each serve the conversion for their control plane.
func checkMultiVersion(k *kubebuilder) {
	k.hooks = newHooks(k)
	crds := k.sides[1].client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const crd = "backups.storage.example.dev"
	k.Cleanup(func() { // otherwise the control plane would continue to call the webhook
		if err := crds.Delete(context.WithoutCancel(k.Context()), crd, metav1.DeleteOptions{}); err != nil {
			k.Error(err)
		}
	})
	k.start(func(i int, crd string) string {
		if i == 1 {
			return crd // the module registers its conversion
		}
		conversion := fmt.Sprintf("spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n"+
			"      clientConfig: {url: 'https://127.0.0.1:%s/convert', caBundle: %s}\n", k.hooks.port, k.hooks.ca)
		return strings.Replace(crd, "spec:\n", conversion, 1)
	}, true)
	k.sides[1].await("the conversion", func() bool {
		o, err := crds.Get(k.Context(), crd, metav1.GetOptions{})
		if err != nil {
			k.Fatal(err)
		}
		strategy, _, err := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
		return err == nil && strategy == "Webhook"
	})

	of := []schema.GroupVersionResource{backupsV1, backupsV2, cronJobs}
	ready := func(name, reason, schedule string) func(objects) bool {
		return func(all objects) bool {
			return all.condition("v1/backups/"+name, "Ready", reason) && all.condition("v2/backups/"+name, "Ready", reason) &&
				all.reads("v1/cronjobs/"+name, schedule, "spec", "schedule")
		}
	}
	k.step("one of v1", of, func(s *side) {
		s.apply("apiVersion: storage.example.dev/v1\nkind: Backup\nmetadata: {name: a}\nspec: {schedule: '30 2 * * *', image: 'tool:1'}\n")
	}, ready("a", "Scheduled", "30 2 * * *"))
	k.step("one of v2", of, func(s *side) {
		s.apply("apiVersion: storage.example.dev/v2\nkind: Backup\nmetadata: {name: b}\nspec: {schedule: {minute: '*/5', dayOfWeek: 1-5}, image: 'tool:1'}\n")
	}, ready("b", "Scheduled", "*/5 * * * 1-5"))
	k.step("an edit of v1 as v2", of, func(s *side) { s.merge(backupsV2, "a", `{"spec":{"schedule":{"hour":"4"}}}`) }, ready("a", "Scheduled", "30 4 * * *"))
	k.step("an edit of v2 as v1", of, func(s *side) { s.merge(backupsV1, "b", `{"spec":{"suspend":true}}`) }, ready("b", "Suspended", "*/5 * * * 1-5"))
	k.step("an edit of the CronJob", of, func(s *side) { s.merge(cronJobs, "a", `{"spec":{"schedule":"0 0 * * *"}}`) }, func(all objects) bool {
		return ready("a", "Scheduled", "30 4 * * *")(all) && all.reads("v1/cronjobs/a", "4", "metadata", "generation")
	})
	k.step("deletions", of, func(s *side) {
		s.remove(backupsV1, "a")
		s.remove(backupsV2, "b")
	}, func(all objects) bool { return len(all) == 0 })
}
