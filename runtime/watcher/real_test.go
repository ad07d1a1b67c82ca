// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// The tests of this file run on a real API server.

// Rule 12, on the real server: one request streams the list and then the changes; the store equals the API's content
// exactly.
func TestReal_StreamsTheListAndFollows(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a", "b", "c")
	cfg := c.RESTConfig()
	asked := queries(cfg)
	w := observe(t, cfg, watcher.Source{Resource: configMaps, Namespace: ns})
	w.synced()
	w.expect("Listed a", "Listed b", "Listed c")
	cm.create("d")
	w.expect("Applied d")
	cm.label("a", "1")
	w.expect("Applied a")
	cm.remove("b")
	w.expect("Deleted b")
	cm.agrees(w.sub.Store())
	wantListedOnce(t, c, asked(), 1)
	if st := w.phase(watcher.Ready); st.Err != nil {
		t.Errorf("ready with %v", st.Err)
	}
}

// Selectors are evaluated by the API server: an object that stops matching is deleted for the watch.
func TestReal_SelectorsSelect(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a", "b")
	cm.label("a", "yes")
	labelled := observe(t, c.RESTConfig(), watcher.Source{Resource: configMaps, Namespace: ns, LabelSelector: "l=yes"})
	named := observe(t, c.RESTConfig(), watcher.Source{Resource: configMaps, Namespace: ns, FieldSelector: "metadata.name=b"})
	labelled.expect("Listed a")
	named.expect("Listed b")
	cm.label("a", "no")
	cm.label("b", "yes")
	labelled.expect("Deleted a", "Applied b")
	named.expect("Applied b")
}

// Rules 11 and 12: the API server is killed and started again twice; objects that were created, changed, deleted and
// recreated meanwhile are seen, and unchanged ones trigger nothing.
func TestReal_KilledAPIServerLosesNothing(t *testing.T) {
	c := devclustertest.Own(t)
	cm := configMapsIn(t, c.RESTConfig(), "default")
	cm.create("same", "changed", "gone", "recreated")
	w := observe(t, c.RESTConfig(), watcher.Source{Resource: configMaps, Namespace: "default"})
	w.expect("Listed same", "Listed changed", "Listed gone", "Listed recreated")
	w.phase(watcher.Ready)
	for round := range 2 {
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		w.phase(watcher.Failing)
		if err := c.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The watch is either waiting for its back-off, or has resumed: both must lead to the same content.
		born := fmt.Sprint("new", round)
		cm.create(born)
		cm.label("changed", fmt.Sprint(round))
		cm.remove("recreated")
		cm.create("recreated")
		w.phase(watcher.Ready)
		for _, ev := range w.before(cm) {
			if strings.HasSuffix(ev, " same") || strings.HasSuffix(ev, " gone") {
				t.Errorf("round %d: %s, which did not change", round, ev)
			}
		}
		cm.agrees(w.sub.Store())
	}
	cm.remove("gone")
	w.expect("Deleted gone")
}

// Rule 12: if the connection is cut and the server is unreachable for a while, nothing is lost.
func TestReal_CutConnectionLosesNothing(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a", "b")
	proxy := devclustertest.Proxy(t, c)
	w := observe(t, proxy.RESTConfig(), watcher.Source{Resource: configMaps, Namespace: ns})
	w.expect("Listed a", "Listed b")
	w.phase(watcher.Ready)
	proxy.Refuse()
	proxy.Cut()
	w.phase(watcher.Failing)
	cm.create("c")
	cm.label("a", "1")
	cm.remove("b")
	proxy.Resume()
	w.phase(watcher.Ready)
	if got := w.before(cm); len(got) != 3 {
		t.Errorf("events %v, want one for each of 3 changes", got)
	}
	cm.agrees(w.sub.Store())
}

// Rule 13: a watch without permissions reports which ones it needs, and continues when they are granted.
func TestReal_DeniedUntilGranted(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	configMapsIn(t, c.RESTConfig(), ns).create("a")
	limited := devclustertest.Limited(t, c, ns, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
	})
	w := observe(t, limited, watcher.Source{Resource: configMaps, Namespace: ns})
	want := "needs the verbs list and watch on configmaps in namespace " + ns
	if st := w.phase(watcher.Denied); !strings.Contains(st.String(), want) || !apierrors.IsForbidden(st.Err) {
		t.Errorf("state %q does not say %q", st, want)
	}
	grant(t, c.RESTConfig(), ns, userOf(t, limited))
	w.phase(watcher.Ready)
	w.expect("Listed a")
}
