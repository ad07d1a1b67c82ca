// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// missed makes one change of each kind; confirm checks that a watch that was interrupted meanwhile sees each of them,
// and nothing else.
func (c things) missed() {
	c.Helper()
	c.create("new")
	c.label("changed", "1")
	c.remove("gone")
	c.remove("recreated")
	c.create("recreated")
}

func (w *witness) confirm(c things) {
	w.Helper()
	seen := map[string]bool{}
	for _, ev := range w.before(c) {
		seen[strings.Fields(ev)[1]] = true
	}
	if len(seen) != 4 || seen["same"] {
		w.Errorf("events about %v, want one or more about each of 4 objects that changed", seen)
	}
	c.agrees(w.sub.Store())
}

// Rules 11 and 12: etcd has discarded the history since the watch was cut, the API server returns 410, and a new list
// contains the changes: nothing is lost, and unchanged objects trigger nothing. The list comes in pages.
func TestReal_CompactionForcesAList(t *testing.T) {
	// Without a watch cache, lists are paged and watches are etcd's.
	c := devclustertest.Own(t, "--etcd-compaction-interval=1s", "--watch-cache-sizes=configmaps#0")
	cm := configMapsIn(t, c.RESTConfig(), "default")
	const pages = 2
	names := make([]string, pages*500)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	cm.create(names...)
	cm.create("same", "changed", "gone", "recreated")
	proxy := devclustertest.Proxy(t, c)
	cfg := proxy.RESTConfig()
	withoutStreams(cfg)
	asked := queries(cfg)
	w := observe(t, cfg, watcher.Source{Resource: configMaps, Namespace: "default"})
	w.synced()
	w.phase(watcher.Ready)
	w.expectListed(append(names, "same", "changed", "gone", "recreated"))
	if n := count(asked(), "continue="); n != pages {
		t.Errorf("%d further pages: %v, want %d", n, asked(), pages)
	}
	version := w.sub.Store().Version()

	proxy.Refuse()
	proxy.Cut()
	w.phase(watcher.Failing)
	cm.missed()
	eventually(t, "compacted", func() bool { return cm.expired(version) })
	before := len(asked())
	proxy.Resume()
	w.phase(watcher.Ready)
	w.confirm(cm)
	if again := asked()[before:]; count(again, "limit=500") == 0 {
		t.Errorf("requests after the compaction: %v, want a list", again)
	}
}

func (w *witness) expectListed(names []string) {
	w.Helper()
	want := make([]string, len(names))
	for i, name := range names {
		want[i] = "Listed " + name
	}
	w.expect(want...)
}

func count(queries []string, part string) (n int) {
	for _, q := range queries {
		if strings.Contains(q, part) {
			n++
		}
	}
	return n
}

// wantListedOnce: each source was listed once, completely, and then watched. If the API server does not list from its
// cache, the list is requested in a watch, and if it does not support that either, in pages.
func wantListedOnce(t *testing.T, c *devcluster.Cluster, asked []string, sources int) {
	t.Helper()
	lists, most := sources, 2*sources
	if !devclustertest.AtLeast(t, c, "1.34") {
		lists, most = 0, 3*sources
	}
	if pages := count(asked, "limit="); len(asked)-count(asked, "watch=true")-pages != lists || len(asked) > most {
		t.Errorf("requests: %v, want one list for each of %d sources", asked, sources)
	}
}

// expired reports whether the API server answers a watch from version with 410.
func (c things) expired(version string) bool {
	seconds := int64(1)
	w, err := c.Watch(c.Context(), metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			err := apierrors.FromObject(ev.Object)
			return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		}
	}
	return false
}

// Rule 13: permissions are revoked and granted again: the watch is denied in between, and nothing is lost.
func TestReal_RightsRevokedAndGivenBack(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("same", "changed", "gone", "recreated")
	limited := devclustertest.Limited(t, c, ns)
	user := userOf(t, limited)
	proxy := devclustertest.Proxy(t, c)
	grant(t, c.RESTConfig(), ns, user)
	w := observe(t, proxy.Through(limited), watcher.Source{Resource: configMaps, Namespace: ns})
	w.expectListed([]string{"same", "changed", "gone", "recreated"})
	w.phase(watcher.Ready)
	revoke(t, c.RESTConfig(), limited, ns)
	proxy.Cut() // an open watch continues without permissions
	w.phase(watcher.Denied)
	cm.missed()
	if n := w.sub.Store().Len(); n < 4 {
		t.Errorf("the store has %d objects while the watch is denied, want what it had", n)
	}
	grant(t, c.RESTConfig(), ns, user)
	w.phase(watcher.Ready)
	w.confirm(cm)
}

// Rule 14: an open connection that transfers nothing is noticed, and nothing is lost.
func TestReal_StalledConnectionIsNoticed(t *testing.T) {
	// client-go's defaults are 30 s and 15 s.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("same", "changed", "gone", "recreated")
	proxy := devclustertest.Proxy(t, c)
	cfg := proxy.RESTConfig()
	cfg.Dial = (&net.Dialer{}).DialContext // otherwise client-go reuses a transport with other timeouts
	w := observe(t, cfg, watcher.Source{Resource: configMaps, Namespace: ns})
	w.expectListed([]string{"same", "changed", "gone", "recreated"})
	w.phase(watcher.Ready)
	proxy.Stall()
	cm.missed()
	w.phase(watcher.Failing)
	proxy.Resume()
	w.phase(watcher.Ready)
	w.confirm(cm)
}

// With Metadata, the API server sends no content, and everything else is as usual.
func TestReal_MetadataOnly(t *testing.T) {
	const secret = "content-that-is-not-asked-for"
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a", "b")
	fill := fmt.Appendf(nil, `{"data":{"k":%q},"metadata":{"annotations":{"n":"1"},"finalizers":["watcher.test/f"]}}`, secret)
	if _, err := cm.Patch(t.Context(), "a", "application/merge-patch+json", fill, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, streams := range []bool{true, false} {
		cfg := c.RESTConfig()
		if !streams {
			withoutStreams(cfg)
		}
		sent := answers(cfg)
		w := observe(t, cfg, watcher.Source{Resource: configMaps, Namespace: ns, Metadata: true, Kind: "ConfigMap"})
		w.expectListed([]string{"a", "b"})
		w.phase(watcher.Ready)
		cm.label("a", fmt.Sprint("streams-", streams))
		w.expect("Applied a")
		o := w.sub.Store().Get(abi.Key{Namespace: ns, Name: "a"})
		got, err := abi.DecodeObject(o.Msgpack())
		if err != nil {
			t.Fatal(err)
		}
		if got["apiVersion"] != "v1" || got["kind"] != "ConfigMap" || len(got) != 3 {
			t.Errorf("streams=%t: stored %v", streams, got)
		}
		if n, _ := o.Annotation("n"); n != "1" || !slices.Contains(slices.Collect(o.Finalizers()), "watcher.test/f") || o.Labels().Get("l") == "" || o.UID() == "" {
			t.Errorf("streams=%t: metadata is missing: %v", streams, got)
		}
		if text := sent(); strings.Contains(text, secret) || !strings.Contains(text, `"n":"1"`) {
			t.Errorf("streams=%t: the API server has sent %s", streams, text)
		}
		w.stop()
	}
	if _, err := cm.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Rule 15, on the real server: watches that are added, changed and removed do not affect another one, and cost one
// request each.
func TestReal_AddingAndRemovingWatches(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a", "b")
	cm.label("a", "yes")
	cfg := c.RESTConfig()
	asked := queries(cfg)
	client, err := watcher.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set := watcher.NewSet(client, watcher.Config{})
	all := watcher.Source{Resource: configMaps, Namespace: ns}
	stays := join(t, set, all)
	stays.expect("Listed a", "Listed b")
	for i, selector := range []string{"l=yes", "l=no", "l"} {
		shares := join(t, set, all)
		shares.expect("Listed a", "Listed b")
		if shares.sub.Store() != stays.sub.Store() {
			t.Error("two stores for one source")
		}
		other := all
		other.LabelSelector = selector
		changes := join(t, set, other)
		changes.synced()
		shares.stop()
		cm.label("b", fmt.Sprint(i))
		stays.expect("Applied b")
		changes.stop()
	}
	wantListedOnce(t, c, asked(), 4)
	if len(set.States()) != 1 {
		t.Errorf("%d watches are left, want 1", len(set.States()))
	}
	cm.agrees(stays.sub.Store())
}
