// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// written is a write that the API server has accepted and acknowledged.
type written struct {
	resource string
	key      abi.Key
	version  int64
}

var (
	errUnavailable = errors.New("the API server is not available")
	errLost        = errors.New("the connection was lost before the answer came")
)

// maxChildren is the maximum number of parts of a widget.
const maxChildren = 2

func childKey(c *ctrl, owner abi.Key, i int) abi.Key {
	return abi.Key{Namespace: owner.Namespace, Name: fmt.Sprintf("%s-%s-%d", owner.Name, c.spec.name, i)}
}

// wants returns the desired children of an object, by key.
func (c *ctrl) wants(o *unstructured.Unstructured) map[abi.Key]int64 {
	all := map[abi.Key]int64{}
	for i := range count(o) {
		all[childKey(c, keyOf(o), i)] = value(o)
	}
	return all
}

func value(o *unstructured.Unstructured) int64 {
	v, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
	return v
}

func count(o *unstructured.Unstructured) int {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "count")
	return int(min(n, maxChildren))
}

// work performs the writes of a run.
func (g *guest) work(ctx context.Context, run *run, res *abi.Result) error {
	c, o := g.c, run.object
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	if c.spec.hot && !c.calm.Load() {
		if err := c.writeCount(ctx, g.r, o); err != nil {
			return err
		}
	}
	switch c.spec.writes {
	case writesNothing:
	case writesStatus:
		return c.writeStatus(ctx, g.r, o)
	case writesChildren:
		for i := range maxChildren {
			if err := c.writeChild(ctx, g.r, o, i); err != nil {
				return err
			}
		}
		return c.writeStatus(ctx, g.r, o)
	case declaresChildren:
		res.Declared = &abi.Declared{Prune: true}
		for i := range count(o) {
			res.Declared.Apply = append(res.Declared.Apply, encode(c.child(o, i)))
		}
		if chance(g.r, 0.5) {
			res.Declared.Status = encode(&unstructured.Unstructured{Object: map[string]any{"observed": value(o)}})
		}
	}
	return nil
}

func (c *ctrl) child(owner *unstructured.Unstructured, i int) *unstructured.Unstructured {
	key := childKey(c, keyOf(owner), i)
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": parts.Kind}}
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	set(o, value(owner), "spec", "value")
	return o
}

// writeStatus writes the value that the run has seen: at any version of the object, or at the version that the run has
// seen, as guests do.
func (c *ctrl) writeStatus(ctx context.Context, r *rand.Rand, o *unstructured.Unstructured) error {
	strict := chance(r, 0.3)
	return c.write(ctx, r, c.spec.kind, func() (*unstructured.Unstructured, error) {
		return c.api.Change(c.spec.kind, keyOf(o), false, func(now *unstructured.Unstructured) error {
			if now.GetUID() != o.GetUID() || strict && now.GetResourceVersion() != o.GetResourceVersion() {
				return apierrors.NewConflict(c.spec.kind.GVR().GroupResource(), o.GetName(), errors.New("modified"))
			}
			set(now, value(o), "status", c.spec.name)
			return nil
		})
	})
}

// writeCount counts the run in the object.
func (c *ctrl) writeCount(ctx context.Context, r *rand.Rand, o *unstructured.Unstructured) error {
	return c.write(ctx, r, c.spec.kind, func() (*unstructured.Unstructured, error) {
		return c.api.Change(c.spec.kind, keyOf(o), false, func(now *unstructured.Unstructured) error {
			n, _, _ := unstructured.NestedInt64(now.Object, "status", c.spec.name+"-runs")
			set(now, n+1, "status", c.spec.name+"-runs")
			return nil
		})
	})
}

func (c *ctrl) writeChild(ctx context.Context, r *rand.Rand, owner *unstructured.Unstructured, i int) error {
	if i < count(owner) {
		return c.applyChild(ctx, r, owner, c.child(owner, i))
	}
	err := c.write(ctx, r, parts, func() (*unstructured.Unstructured, error) {
		return c.api.Delete(parts, childKey(c, keyOf(owner), i), "")
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// applyChild is a server-side apply: it sets the desired fields of the child and its owner, and does not change the
// others.
func (c *ctrl) applyChild(ctx context.Context, r *rand.Rand, owner, child *unstructured.Unstructured) error {
	return c.write(ctx, r, parts, func() (*unstructured.Unstructured, error) {
		return c.api.Change(parts, keyOf(child), true, func(now *unstructured.Unstructured) error {
			set(now, value(child), "spec", "value")
			now.SetOwnerReferences([]metav1.OwnerReference{ownerOf(owner, true)})
			return nil
		})
	})
}

// write performs a write of a run. It may be late, be rejected, or be accepted without a response.
func (c *ctrl) write(ctx context.Context, r *rand.Rand, kind memapi.Kind, do func() (*unstructured.Unstructured, error)) error {
	bad := func(p float64) bool { return !c.calm.Load() && chance(r, p*c.plot.mood) }
	if bad(0.2) && !nap(ctx, upTo(r, time.Second)) {
		return ctx.Err()
	}
	if bad(0.05) {
		return errUnavailable
	}
	o, err := do()
	if err != nil {
		return err
	}
	c.logf("%s: writes %s %s: version %s", c.spec.name, kind.Kind, keyOf(o), o.GetResourceVersion())
	if bad(0.2) && !nap(ctx, upTo(r, time.Second)) {
		return ctx.Err()
	}
	if bad(0.05) {
		return errLost
	}
	c.report(ctx, kind, o)
	return nil
}

// report notifies the run of a write.
func (c *ctrl) report(ctx context.Context, kind memapi.Kind, o *unstructured.Unstructured) {
	run := abi.RunFrom(ctx)
	if run == nil || run.Wrote == nil {
		c.violated("%s: a write without a run", c.spec.name)
		return
	}
	body, err := json.Marshal(o.Object)
	if err != nil {
		panic(err)
	}
	run.Wrote(abi.Write{
		Op: abi.OpAPIApply, Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Key: keyOf(o),
		UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(), Labels: o.GetLabels(), Body: body,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote[run.Key] = append(c.wrote[run.Key], written{kind.Resource, keyOf(o), version(o)})
}

func version(o *unstructured.Unstructured) int64 {
	v, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// cluster is a ctrl as applier.Cluster, with the guarantees of kubeapi.
type cluster ctrl

// rand returns the random numbers for the run's next step.
func (cl *cluster) rand(ctx context.Context) *rand.Rand {
	return (*ctrl)(cl).rng("cluster", abi.RunFrom(ctx).Key, cl.seq.Add(1))
}

// Declare implements applier.Cluster.
func (cl *cluster) Declare(ctx context.Context, of applier.Owner, d *abi.Declared) error {
	c, owner, r := (*ctrl)(cl), decode(of.Object), cl.rand(ctx)
	listed := map[abi.Key]bool{}
	for _, b := range d.Apply {
		child := decode(b)
		listed[keyOf(child)] = true
		if err := c.applyChild(ctx, r, owner, child); err != nil {
			return err
		}
	}
	if d.Prune {
		if err := c.prune(ctx, r, owner, listed); err != nil {
			return err
		}
	}
	if d.Status != nil {
		if err := c.writeStatus(ctx, r, owner); err != nil {
			return result(err)
		}
	}
	return nil
}

func (c *ctrl) prune(ctx context.Context, r *rand.Rand, owner *unstructured.Unstructured, listed map[abi.Key]bool) error {
	type old struct {
		key abi.Key
		uid string
	}
	var all []old
	c.cache.Children(keyOf(owner), string(owner.GetUID()), func(_ schema.GroupVersionResource, child abi.Key, uid, _ string) bool {
		if !listed[child] {
			all = append(all, old{child, uid})
		}
		return true
	})
	for _, o := range all {
		err := c.write(ctx, r, parts, func() (*unstructured.Unstructured, error) { return c.api.Delete(parts, o.key, o.uid) })
		if err != nil && !apierrors.IsNotFound(err) && !isConflict(err) {
			return err
		}
	}
	return nil
}

// result gives a conflict its class; any other error is transient.
func result(err error) error {
	if isConflict(err) {
		return &abi.ResultError{Class: abi.ErrorConflict, Message: err.Error()}
	}
	return err
}

// AddFinalizer implements applier.Cluster.
func (cl *cluster) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	c, o := (*ctrl)(cl), decode(object)
	var updated *unstructured.Unstructured
	err := c.write(ctx, cl.rand(ctx), c.spec.kind, func() (_ *unstructured.Unstructured, err error) {
		updated, err = c.patchFinalizers(o, func(now *unstructured.Unstructured) []string {
			if now.GetDeletionTimestamp() != nil || !slices.Equal(now.GetFinalizers(), o.GetFinalizers()) {
				return nil
			}
			return append(now.GetFinalizers(), finalizer)
		})
		return updated, err
	})
	if err != nil {
		return nil, result(err)
	}
	return encode(updated), nil
}

// RemoveFinalizer implements applier.Cluster.
func (cl *cluster) RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error {
	c, o := (*ctrl)(cl), decode(object)
	c.mu.Lock()
	clean := c.finalized[o.GetUID()]
	c.mu.Unlock()
	if !clean {
		c.violated("rule 21: %s: the finalizer of %s is removed without a successful finalize", c.spec.name, keyOf(o))
	}
	err := c.write(ctx, cl.rand(ctx), c.spec.kind, func() (*unstructured.Unstructured, error) {
		return c.patchFinalizers(o, func(now *unstructured.Unstructured) []string {
			i := slices.Index(o.GetFinalizers(), finalizer)
			if i >= len(now.GetFinalizers()) || now.GetFinalizers()[i] != finalizer {
				return nil
			}
			return slices.Delete(now.GetFinalizers(), i, i+1)
		})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return result(err)
}

// patchFinalizers is a JSON patch with tests: f returns nil if they fail.
func (c *ctrl) patchFinalizers(o *unstructured.Unstructured, f func(now *unstructured.Unstructured) []string) (*unstructured.Unstructured, error) {
	return c.api.Change(c.spec.kind, keyOf(o), false, func(now *unstructured.Unstructured) error {
		next := f(now)
		if next == nil || now.GetUID() != o.GetUID() {
			return apierrors.NewConflict(c.spec.kind.GVR().GroupResource(), o.GetName(), errors.New("a test of the patch does not hold"))
		}
		if len(next) == 0 {
			next = nil
		}
		now.SetFinalizers(next)
		return nil
	})
}

// Inspect implements applier.Cluster.
func (cl *cluster) Inspect(_ context.Context, w abi.Write) ([]byte, error) {
	i := slices.IndexFunc(kinds, func(k memapi.Kind) bool { return k.Resource == w.Resource })
	o, err := cl.api.Get(kinds[i], w.Key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(o.Object)
}
