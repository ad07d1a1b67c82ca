// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

const migrationGrant = `apiVersion: wasmctl.dev/v1
kind: Grant
controller: website
capabilities:
- {group: examples.wasmctl.dev, resource: websites, verbs: [get, list, watch]}
- {group: examples.wasmctl.dev, resource: websites, verbs: [convert]}
- {resource: configmaps, verbs: [list, watch]}
`

// TestWebhooks_Migration: the stored version of a CRD changes, and all objects are listed and updated, as a storage migration does. It logs
// the durations, and checks that each object is converted. WASMCTL_OBJECTS is the number of objects, 500 by default.
func TestWebhooks_Migration(t *testing.T) {
	if !e2e.All() {
		t.Skip("SKIPPED: it mostly measures: WASMCTL_TESTS=all go test -v -run Migration ./test/e2e/webhooks")
	}
	n, err := strconv.Atoi(os.Getenv("WASMCTL_OBJECTS"))
	if err != nil {
		n = 500
	}
	w, grant := newWorld(t), filepath.Join(t.TempDir(), "grant.yaml")
	e2e.Replace(t, grant, []byte(migrationGrant))
	crd := e2e.ReadFile(t, "../../../examples/website/crd.yaml")
	for _, change := range [][2]string{{"storage: true", "storage: no"}, {"storage: false", "storage: true"}, {"storage: no", "storage: false"}} {
		crd = bytes.Replace(crd, []byte(change[0]), []byte(change[1]), 1)
	}
	devclustertest.Apply(t, w.cluster, crd)
	forAll(t, "create in v1", n, func(i int) error {
		o := site("v1", fmt.Sprint("s", i), map[string]any{"address": fmt.Sprintf("h%d.example:81", i)})
		_, err := w.sites("v1").Create(t.Context(), o, metav1.CreateOptions{})
		return err
	})
	// The selector matches no object: nothing else is done about them.
	c := e2e.Run(t, e2e.Example(t, website), "--name", website, "--grant", grant, "-l", "none", "--webhook-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--socket", "none",
		"--kubeconfig", w.kubeconfig)
	enginetest.Until(t, "the CRD converts", func() bool {
		o, err := w.sites("v2").Get(t.Context(), "s0", metav1.GetOptions{})
		return err == nil && fmt.Sprint(o.Object["spec"]) == "map[host:h0.example port:81]"
	})
	devclustertest.ApplyFile(t, w.cluster, "../../../examples/website/crd.yaml")
	var list *unstructured.UnstructuredList
	var took time.Duration
	enginetest.Until(t, "the API server has the objects in its cache again", func() bool {
		began := time.Now()
		list, err = w.sites("v2").List(t.Context(), metav1.ListOptions{})
		took = time.Since(began)
		return err == nil && len(list.Items) == n
	})
	t.Logf("list in v2: %v, %v for each object", took, took/time.Duration(n))
	forAll(t, "update in v2", n, func(i int) error {
		_, err := w.sites("v2").Update(t.Context(), &list.Items[i], metav1.UpdateOptions{})
		return err
	})
	const requests = "controller_runtime_webhook_requests_total"
	t.Logf("%s: %g", requests, e2e.Scraped(t, e2e.Served(t, c, "/metrics")).Sums[requests])
}

// forAll does something for each object, eight at a time, and logs how long it took.
func forAll(t *testing.T, what string, n int, do func(i int) error) {
	t.Helper()
	began, next := time.Now(), make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					t.Errorf("%s: object %d: %v", what, i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	took := time.Since(began)
	t.Logf("%s: %v, %v for each object", what, took, took/time.Duration(n))
}
