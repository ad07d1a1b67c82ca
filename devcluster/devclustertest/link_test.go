// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// arrival limits the wait for data that must arrive, and quiet for data that must not.
const (
	arrival = 20 * time.Second
	quiet   = 300 * time.Millisecond
)

func watchConfigMaps(t *testing.T, rc *rest.Config, namespace string) watch.Interface {
	t.Helper()
	w, err := clientset(t, rc).CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(w.Stop)
	return w
}

// wantEvent waits for the event of the object with this name.
func wantEvent(t *testing.T, w watch.Interface, name string) {
	t.Helper()
	select {
	case ev, ok := <-w.ResultChan():
		if !ok {
			t.Fatalf("the watch ended before the event of %s", name)
		}
		if cm, ok := ev.Object.(*corev1.ConfigMap); !ok || cm.Name != name {
			t.Fatalf("event of %v, want that of %s", ev.Object, name)
		}
	case <-time.After(arrival):
		t.Fatalf("no event of %s", name)
	}
}

func TestLink_CutBreaksAWatchAndTakesTheNext(t *testing.T) {
	c := Shared(t)
	ns, link := Namespace(t, c), Proxy(t, c)
	w := watchConfigMaps(t, link.RESTConfig(), ns)
	createConfigMap(t.Context(), t, c.RESTConfig(), ns, "before")
	wantEvent(t, w, "before")

	link.Cut()
	select {
	case ev, ok := <-w.ResultChan():
		if ok && ev.Type != watch.Error {
			t.Fatalf("event %v after Cut, want the watch's end", ev)
		}
	case <-time.After(arrival):
		t.Fatal("the watch goes on after Cut")
	}
	again := watchConfigMaps(t, link.RESTConfig(), ns)
	wantEvent(t, again, "before")
}

func TestLink_StallHoldsAWatchAndResumeLosesNothing(t *testing.T) {
	c := Shared(t)
	ns, link := Namespace(t, c), Proxy(t, c)
	w := watchConfigMaps(t, link.RESTConfig(), ns)
	createConfigMap(t.Context(), t, link.RESTConfig(), ns, "before")
	wantEvent(t, w, "before")

	link.Stall()
	link.Stall() // a second call changes nothing
	createConfigMap(t.Context(), t, c.RESTConfig(), ns, "meanwhile")
	select {
	case ev, ok := <-w.ResultChan():
		t.Fatalf("event %v (%t) through a stalled link, want none and the watch open", ev, ok)
	case <-time.After(quiet):
	}
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	if _, err := clientset(t, link.RESTConfig()).CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("list through a stalled link: %v, want no answer", err)
	}
	link.Resume()
	wantEvent(t, w, "meanwhile")
}

func TestLink_RefusedIsConnectionRefused(t *testing.T) {
	c := Shared(t)
	link := Proxy(t, c)
	client := clientset(t, link.RESTConfig()).CoreV1().Namespaces()
	get := func() error {
		_, err := client.Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	link.Refuse()
	if err := get(); err != nil {
		t.Errorf("on a connection from before Refuse: %v", err)
	}
	link.Cut()
	// The client may notice the end of its old connection first.
	deadline := time.Now().Add(arrival)
	err := get()
	for !errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline) {
		err = get()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Refuse and Cut: %v, want connection refused", err)
	}
	link.Resume()
	if err := get(); err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

// Calls from several goroutines while connections come and go: no data race, no deadlock, and it works in the end.
func TestLink_HammeredWorksInTheEnd(t *testing.T) {
	c := Shared(t)
	link := Proxy(t, c)
	client := clientset(t, link.RESTConfig()).CoreV1().Namespaces()
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := client.Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	var calls sync.WaitGroup
	for range 50 {
		for _, f := range []func(){link.Stall, link.Cut, link.Refuse, link.Resume, link.Resume} {
			calls.Go(f)
		}
		_ = get(20 * time.Millisecond) // may fail, but must return
	}
	calls.Wait() // a Stall after the last Resume would block the check
	link.Resume()
	if err := get(arrival); err != nil {
		t.Error(err)
	}
}
