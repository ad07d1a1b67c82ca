// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// oneThread makes goroutines take turns, as in a module.
func oneThread(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

var defaultNamespace = wasmctl.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: "default"}

// TestRunnables_AreAControllerOfTheirOwn: it has one object, whatever the cache of
// the manager is restricted to, and the name "runnables".
func TestRunnables_AreAControllerOfTheirOwn(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.Secret{}).Complete(nothing))
	idle := manager.RunnableFunc(func(context.Context) error { return nil })
	must(t, errors.Join(m.Add(idle), m.Add(idle)))
	r, err := manager.Reconciler(m, "runnables")
	if err != nil || r.Manifest.For.Kind != "Namespace" || r.Manifest.For.FieldSelector != "metadata.name=default" || len(r.Manifest.Watches) > 0 {
		t.Errorf("%+v, %v", r.Manifest, err)
	}
	if r, err := manager.Reconciler(m, "secret"); err != nil || r.Manifest.For.Kind != "Secret" {
		t.Errorf("%+v, %v", r.Manifest, err)
	}
	if _, err := manager.Reconciler(m, "x"); err == nil || !strings.HasSuffix(err.Error(), "secret, runnables") {
		t.Errorf("of another name: %v", err)
	}
}

// TestRunnables_EachRunResumesThem: a Runnable starts once, continues where it
// waits, and starts again after an error. Its reads see all objects. Elected is
// closed by the first run.
func TestRunnables_EachRunResumesThem(t *testing.T) {
	oneThread(t)
	m := newManager(t, ctrl.Options{})
	c := m.GetClient()
	tick, namespaces, fails := make(chan string, 1), 0, 2
	must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-m.Elected()
		var all corev1.NamespaceList
		if err := c.List(ctx, &all); err != nil {
			return err
		}
		namespaces = len(all.Items)
		for name := range tick {
			if err := c.Create(ctx, configMap(name)); err != nil {
				return err
			}
		}
		return nil
	})))
	must(t, m.Add(manager.RunnableFunc(func(context.Context) error {
		if fails--; fails > 0 {
			return errors.New("not yet")
		}
		return nil
	})))
	select {
	case <-m.Elected():
		t.Error("elected before a run")
	default:
	}
	rec := declared(t, m)
	rec.Manifest.Capabilities = append(rec.Manifest.Capabilities,
		wasmctl.Capability{Resource: "configmaps", Verbs: []string{"*"}}, wasmctl.Capability{Resource: "namespaces", Verbs: []string{"*"}})
	namespace := func(name string) any {
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	}
	host := guesttest.New(t, namespace("default"), namespace("other"))

	first := host.Reconcile(rec, defaultNamespace)
	if first.Failure == nil || !strings.Contains(first.Failure.Message, "not yet") || !strings.Contains(first.Failure.Message, "runnables_test.go:") || namespaces != 2 {
		t.Errorf("first run: %+v, %d namespaces", first.Failure, namespaces)
	}
	tick <- "a"
	second := host.Reconcile(rec, defaultNamespace)
	fine(t, second)
	if after, again := second.Action.Requeued(); !again || after != time.Second || fails != 0 {
		t.Errorf("requeued %v, %v; %d failures left", again, after, fails)
	}
	close(tick)
	last := host.Reconcile(rec, defaultNamespace)
	fine(t, last)
	if _, again := last.Action.Requeued(); again || !host.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"}).Exists() {
		t.Errorf("requeued %v after the last Runnable has ended", again)
	}
}

// TestRunnables_AreAddedBeforeStart: a later one would never run.
func TestRunnables_AreAddedBeforeStart(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	if err := m.Start(t.Context()); err == nil {
		t.Error("a manager without controllers has started")
	}
	err := m.Add(manager.RunnableFunc(func(context.Context) error { return nil }))
	if err == nil || !strings.Contains(err.Error(), "runnables_test.go:") {
		t.Errorf("added after Start: %v", err)
	}
}

// TestRunnables_PauseIsAShareOfTheQuietTime: so a timer is late by an eighth of
// its period at most, and by 30 s.
func TestRunnables_PauseIsAShareOfTheQuietTime(t *testing.T) {
	for quiet, want := range map[time.Duration]time.Duration{
		0: time.Second, 8 * time.Second: time.Second, 16 * time.Second: 2 * time.Second, time.Hour: 30 * time.Second, -time.Hour: time.Second,
	} {
		if got := manager.Pause(quiet); got != want {
			t.Errorf("after %v: %v, want %v", quiet, got, want)
		}
	}
}
