// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// sharded is ConfigMapGenerators in many namespaces, which replicas share by shards, and
// their wanted content.
type sharded struct {
	t          *testing.T
	audit      *audit
	client     dynamic.Interface
	core       kubernetes.Interface
	leases     string   // the namespace of the leases
	flags      []string // of the leases
	namespaces []string
	each       int // objects in a namespace

	mu      sync.Mutex
	want    map[string]string // guarded by mu; content, by namespace and name
	records []recorded        // guarded by mu; the record after each change
}

// recorded is a record, and when it was written.
type recorded struct {
	shard.Record

	at time.Time
}

const shardsOfTest = 8

func newSharded(t *testing.T, namespaces, each int, apiServerFlags ...string) *sharded {
	t.Helper()
	a := newAudit(t, apiServerFlags...)
	devclustertest.ApplyFile(t, a.cluster, "../../../examples/configmapgenerator/crd.yaml")
	c := &sharded{t: t, audit: a, each: each, want: map[string]string{}, flags: e2e.ShortLeases, leases: devclustertest.Namespace(t, a.cluster)}
	var err error
	if c.client, err = dynamic.NewForConfig(a.cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if c.core, err = kubernetes.NewForConfig(a.cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	for range namespaces {
		c.namespaces = append(c.namespaces, devclustertest.Namespace(t, a.cluster))
	}
	c.watchRecord()
	return c
}

// watchRecord stores each state of the record.
func (c *sharded) watchRecord() {
	c.t.Helper()
	w, err := c.core.CoordinationV1().Leases(c.leases).Watch(c.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=crowd-shards", TimeoutSeconds: new(int64(3600))})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(w.Stop)
	go func() {
		for ev := range w.ResultChan() {
			lease, ok := ev.Object.(*coordinationv1.Lease)
			var r recorded
			if !ok || ev.Type == watch.Deleted || json.Unmarshal([]byte(lease.Annotations["wasmctl.dev/record"]), &r.Record) != nil {
				continue
			}
			r.at = lease.Spec.RenewTime.Time
			c.mu.Lock()
			c.records = append(c.records, r)
			c.mu.Unlock()
		}
	}()
}

// member starts a replica.
func (c *sharded) member() *replica {
	c.t.Helper()
	rc, user := c.audit.newUser()
	link := devclustertest.Proxy(c.t, c.audit.cluster)
	args := append([]string{
		e2e.Example(c.t, "configmapgenerator"), "--socket", "none", "--kubeconfig", e2e.WriteKubeconfig(c.t, link.Through(rc)),
		"--shards", fmt.Sprint(shardsOfTest), "--leader-elect-resource-namespace", c.leases, "--leader-elect-resource-name", "crowd",
	}, c.flags...)
	r := &replica{Process: e2e.Run(c.t, args...), user: user, link: link}
	var line struct{ Replica string }
	if err := json.Unmarshal([]byte(r.WantLine(`"msg":"sharing the objects`)), &line); err != nil {
		c.t.Fatal(err)
	}
	r.id, r.lease = line.Replica, line.Replica
	return r
}

// fenced waits until another replica has ended the lease of a replica.
func (c *sharded) fenced(r *replica) {
	c.t.Helper()
	enginetest.Until(c.t, "the lease "+r.lease+" is ended", func() bool {
		lease, err := c.core.CoordinationV1().Leases(c.leases).Get(c.t.Context(), r.lease, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && lease.Spec.HolderIdentity == nil
	})
}

// put sets the content of an object, and tries again until the API server has accepted
// it.
func (c *sharded) put(ctx context.Context, ns, name, content string) {
	c.mu.Lock()
	c.want[ns+"/"+name] = content
	c.mu.Unlock()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "examples.wasmctl.dev/v1", "kind": "ConfigMapGenerator", "metadata": map[string]any{"name": name}, "spec": map[string]any{"content": content},
	}}
	for ctx.Err() == nil {
		if _, err := c.client.Resource(e2e.Generators).Namespace(ns).Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "user", Force: true}); err == nil {
			return
		}
		e2e.Pause(ctx, 100*time.Millisecond)
	}
}

// putAll makes all objects.
func (c *sharded) putAll() {
	var wg sync.WaitGroup
	for _, ns := range c.namespaces {
		wg.Go(func() {
			for i := range c.each {
				c.put(c.t.Context(), ns, fmt.Sprint("g", i), "first")
			}
		})
	}
	wg.Wait()
}

// churn changes all objects in rounds of the given duration, or longer ones, until stop is called.
func (c *sharded) churn(round time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	pace := 2 * round / time.Duration(len(c.namespaces)*c.each) // of each of two writers
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				for i := w; i < len(c.namespaces)*c.each && ctx.Err() == nil; i += 2 {
					c.put(context.WithoutCancel(ctx), c.namespaces[i%len(c.namespaces)], fmt.Sprint("g", i/len(c.namespaces)), fmt.Sprint("round ", round))
					e2e.Pause(ctx, pace)
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// confirm waits until each object has its ConfigMap with the wanted content.
func (c *sharded) confirm() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), e2e.SettleLimit)
	defer cancel()
	for {
		err := c.differs(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("not all objects have their ConfigMap: %v", err)
		}
		e2e.Pause(ctx, 200*time.Millisecond)
	}
}

func (c *sharded) differs(ctx context.Context) error {
	list, err := c.core.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	have := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		have[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, content := range c.want {
		if cm := have[key]; cm == nil || cm.Data["content"] != content {
			return fmt.Errorf("%s: have %v, want %q", key, cm != nil, content)
		}
	}
	return nil
}

// covered waits until each slot is run by one replica, and all slots by a number of
// replicas.
func (c *sharded) covered(replicas int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), e2e.SettleLimit)
	defer cancel()
	for {
		open, holders := c.open(ctx)
		if open == shardsOfTest && holders == replicas {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("%d slots of %d are run, by %d replicas, want %d", open, shardsOfTest, holders, replicas)
		}
		e2e.Pause(ctx, 50*time.Millisecond)
	}
}

// open returns the number of slots that are run, and of replicas that run them, by their
// Leases.
func (c *sharded) open(ctx context.Context) (open, holders int) {
	list, err := c.core.CoordinationV1().Leases(c.leases).List(ctx, metav1.ListOptions{LabelSelector: "wasmctl.dev/shards=crowd"})
	if err != nil {
		return 0, 0
	}
	for _, lease := range list.Items {
		var s shard.State
		if lease.Name == "crowd-shards" || lease.Spec.HolderIdentity == nil || json.Unmarshal([]byte(lease.Annotations["wasmctl.dev/replica"]), &s) != nil {
			continue
		}
		if n := s.Open.Len(); n > 0 {
			open, holders = open+n, holders+1
		}
	}
	return open, holders
}

// wantOwnersOnly checks in the audit log that each write came from the replica that had
// the slot of the namespace at that time, and that no ConfigMap was created twice.
func (c *sharded) wantOwnersOnly(replicas ...*replica) {
	c.t.Helper()
	c.mu.Lock()
	records := c.records
	c.mu.Unlock()
	byUser, created, checked := map[string]*replica{}, map[string]int{}, 0
	for _, r := range replicas {
		byUser[r.user] = r
	}
	for _, w := range c.audit.all() {
		r := byUser[w.User.Username]
		if r == nil || w.Object.Namespace == c.leases { // Leases, and events about the record
			continue
		}
		if w.Object.Resource == "configmaps" && w.Response.Code == 201 {
			created[w.Object.Namespace+"/"+w.Object.Name]++
		}
		checked++
		if slot := slots.Of(w.Object.Namespace, shardsOfTest); !owned(records, slot, r.id, w.Received, w.Done) {
			c.t.Errorf("%s wrote %s %s/%s at %v, and did not have slot %d", r.id, w.Object.Resource, w.Object.Namespace, w.Object.Name, w.Received, slot)
		}
	}
	for key, n := range created {
		if n > 1 {
			c.t.Errorf("%s was created %d times", key, n)
		}
	}
	// If the client of a write was killed before the answer, the write takes effect but is logged as a failure.
	if checked < len(c.want) || len(created) < len(c.want)*9/10 {
		c.t.Errorf("the audit log has %d writes, and %d creations of %d objects", checked, len(created), len(c.want))
	}
	c.t.Logf("%d writes of replicas, each of the owner; %d states of the record", checked, len(records))
}

// owned reports whether a replica had a slot during all of a period.
func owned(records []recorded, slot int, id string, from, to time.Time) bool {
	for i, r := range records {
		s := r.Slots[slot]
		if s.Owner != id && !strings.HasPrefix(s.Owner, id+"-") || from.Before(s.Moved) { // with a suffix after it has joined again
			continue
		}
		lost := false
		for _, later := range records[i+1:] {
			if l := later.Slots[slot]; l.Owner != s.Owner || l.Epoch != s.Epoch {
				lost = later.at.Before(to)
				break
			}
		}
		if !lost {
			return true
		}
	}
	return false
}

// objectsOfShards returns the number of objects in each of 16 namespaces:
// WASMCTL_TEST_SHARDS.
func objectsOfShards(t *testing.T) int {
	t.Helper()
	text := os.Getenv("WASMCTL_TEST_SHARDS")
	if text == "" {
		return 3
	}
	each, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("WASMCTL_TEST_SHARDS: %v", err)
	}
	return each
}

// TestShards_EachObjectHasOneReplica: replicas start, are killed, are stopped for longer
// than their lease, and stop in order, while all objects change. Nothing is lost, and
// only the replica that has an object writes it.
func TestShards_EachObjectHasOneReplica(t *testing.T) {
	t.Parallel()
	each := objectsOfShards(t)
	for name, flags := range map[string][]string{"server": {"--feature-gates=ShardedListAndWatch=true"}, "client": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSharded(t, 16, each, flags...)
			c.putAll()
			first := c.member()
			first.WantLine(fmt.Sprintf(`"selects":%t`, flags != nil))
			c.covered(1)
			stop := c.churn(time.Second)
			second, third := c.member(), c.member()
			c.covered(3)
			first.Signal(syscall.SIGKILL)
			c.covered(2)
			second.Signal(syscall.SIGSTOP)
			fourth := c.member()
			c.fenced(second)
			c.covered(2)
			second.Signal(syscall.SIGCONT)
			second.WantLine("the replica joins again")
			second.Signal(syscall.SIGTERM)
			second.WantExit(e2e.ExitOK)
			fifth := c.member()
			c.covered(3)
			third.Signal(syscall.SIGTERM)
			third.WantExit(e2e.ExitOK)
			c.covered(2)
			stop()
			c.confirm()
			fourth.Signal(syscall.SIGTERM)
			fifth.Signal(syscall.SIGTERM)
			fourth.WantExit(e2e.ExitOK)
			fifth.WantExit(e2e.ExitOK)
			c.wantOwnersOnly(first, second, third, fourth, fifth)
		})
	}
}

// TestShards_ScaleAndRollingRestart: one replica becomes five, these are replaced one
// after the other, and all but two stop, while all objects change.
func TestShards_ScaleAndRollingRestart(t *testing.T) {
	t.Parallel()
	c := newSharded(t, 16, objectsOfShards(t), "--feature-gates=ShardedListAndWatch=true")
	c.putAll()
	live := []*replica{c.member()}
	c.covered(1)
	stop := c.churn(time.Second)
	for range 4 {
		live = append(live, c.member())
	}
	c.covered(5)
	all := slices.Clone(live)
	leave := func() {
		live[0].Signal(syscall.SIGTERM)
		live[0].WantExit(e2e.ExitOK)
		live = live[1:]
		c.covered(len(live))
	}
	for range 5 {
		r := c.member()
		live, all = append(live, r), append(all, r)
		leave()
	}
	for range 3 {
		leave()
	}
	stop()
	c.confirm()
	for _, r := range live {
		r.Signal(syscall.SIGTERM)
		r.WantExit(e2e.ExitOK)
	}
	c.wantOwnersOnly(all...)
}

// A replica that stops hands its objects over: they are run by another one soon.
func TestShards_AStopHandsOver(t *testing.T) {
	t.Parallel()
	c := newSharded(t, 8, 2)
	first := c.member()
	c.covered(1)
	for _, ns := range c.namespaces {
		c.put(t.Context(), ns, "g0", "before")
	}
	c.confirm()
	second := c.member()
	c.covered(2)
	first.Signal(syscall.SIGTERM)
	first.WantExit(e2e.ExitOK)
	c.covered(1)
	for _, ns := range c.namespaces {
		c.put(t.Context(), ns, "g0", "after")
	}
	c.confirm()
	second.Signal(syscall.SIGTERM)
	second.WantExit(e2e.ExitOK)
	list, err := c.core.CoordinationV1().Leases(c.leases).List(t.Context(), metav1.ListOptions{LabelSelector: "wasmctl.dev/shards=crowd"})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Errorf("%d leases are left, want that of the record", len(list.Items))
	}
	c.wantOwnersOnly(first, second)
}
