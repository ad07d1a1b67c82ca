// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// programs runs programs in place of the module's guests. A program is the text in
// data.program of a ConfigMap; the values that it reads determine its writes.
type programs struct {
	*world

	mu   sync.Mutex
	runs map[string]int // by name; guarded by mu
}

// world is a Controller whose guests are programs, on an API server in memory.
type world struct {
	*swapping
	api      *memapi.Server
	programs *programs
	memo     string
	settings map[string]string
	end      func()
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// newWorld starts a world. The caller must end it.
func newWorld(t *testing.T, memo string) *world {
	t.Helper()
	w := &world{swapping: &swapping{t: t, ns: "shop"}, api: memapi.New(memapi.Config{}), memo: memo, settings: map[string]string{}}
	var err error
	if w.client, err = dynamic.NewForConfig(&rest.Config{Host: "http://memory", Transport: w.api, QPS: -1}); err != nil {
		t.Fatal(err)
	}
	// A watch without objects could not tell that it is of ConfigMaps.
	if err := w.api.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "root", "namespace": w.ns}}); err != nil {
		t.Fatal(err)
	}
	w.programs = &programs{world: w, runs: map[string]int{}}
	w.start(0)
	return w
}

// start runs the controller with the n-th module.
func (w *world) start(n int) {
	w.t.Helper()
	opts := swapOptions()
	opts.config = &rest.Config{Host: "http://memory", Transport: w.api}
	opts.shared.CacheDir, opts.shared.CacheKey, opts.Memo, opts.Rollout.Probation = "", []byte("key"), w.memo, "0s"
	opts.Settings = maps.Clone(w.settings)
	manifest := enginetest.MayWrite("configmaps", "secrets")
	manifest.For = &abi.Watch{Version: "v1", Kind: "ConfigMap"}
	manifest.Owns = []abi.Watch{{Version: "v1", Kind: "Secret"}}
	w.started = func() { w.engine.guests = w.programs }
	w.end = w.run(enginetest.Numbered(enginetest.WithManifest(w.t, enginetest.Good, manifest), n), opts)
}

// Acquire implements applier.Module.
func (p *programs) Acquire(context.Context) (abi.Guest, func(), error) { return p, func() {}, nil }

// Revision implements abi.Guest.
func (p *programs) Revision() uint64 { return p.engine.Module.Revision() }

// Fuel implements abi.Guest.
func (p *programs) Fuel() int64 { return 0 }

// Finalize implements abi.Guest.
func (p *programs) Finalize(context.Context, *abi.Request) (abi.Result, error) {
	return abi.Result{}, nil
}

// ErrorPolicy implements abi.Guest.
func (p *programs) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// Reconcile implements abi.Guest.
func (p *programs) Reconcile(ctx context.Context, req *abi.Request) (res abi.Result, err error) {
	p.mu.Lock()
	p.runs[req.Key.Name]++
	p.mu.Unlock()
	o, err := abi.DecodeObject(req.Object)
	if err != nil {
		return res, err
	}
	values, _ := p.engine.Module.Settings()
	seen := []any{p.engine.Module.Digest(), values, data(o)}
	declared, declares := &abi.Declared{Prune: true, Force: true}, false
	program, _, _ := unstructured.NestedString(o, "data", "program")
	for step := range strings.FieldsSeq(program) {
		op, arg, _ := strings.Cut(step, ":")
		switch op {
		case "get", "live":
			seen = append(seen, p.ask(ctx, map[string]abi.Op{"get": abi.OpCacheGet, "live": abi.OpAPIGet}[op], map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": p.ns, "name": arg}))
		case "list":
			seen = append(seen, p.ask(ctx, abi.OpCacheList, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": p.ns, "labelSelector": "group=" + arg}))
		case "clock":
			p.source(ctx, abi.SourceClock)
			seen = append(seen, time.Now().Truncate(time.Hour).Unix())
		case "random", "metric":
			p.source(ctx, map[string]abi.Source{"random": abi.SourceRandom, "metric": abi.SourceMetric}[op])
		case "child":
			declares = true
			declared.Apply = append(declared.Apply, packed("Secret", "", req.Key.Name+"-"+arg, seen))
		case "none": // it wants no children
			declares = true
		case "write":
			p.ask(ctx, abi.OpAPIApply, map[string]any{"force": true, "object": object("ConfigMap", p.ns, "out-"+req.Key.Name, seen)})
		case "fail":
			if strings.Contains(fmt.Sprint(seen), "bad") {
				return abi.Result{Error: &abi.ResultError{Class: abi.ErrorPermanent, Reason: "Bad", Message: "bad"}}, nil
			}
		case "requeue":
			res.Action = abi.Action{Requeue: true, After: 5 * time.Minute}
		}
	}
	if declares {
		res.Declared = declared
	}
	return res, nil
}

// ask sends an operation to the host like a guest, and returns the result without the parts
// that change with each write.
func (p *programs) ask(ctx context.Context, op abi.Op, request map[string]any) any {
	req, err := abi.AppendValue(nil, request)
	if err != nil {
		p.t.Fatal(err)
	}
	answer := p.engine.recorder.API(p.engine.api).Call(ctx, op, req)
	if answer.Status != abi.StatusOK {
		return answer.Status.String()
	}
	o, err := abi.DecodeObject(answer.Body)
	if err != nil {
		p.t.Error(err)
	}
	items, isList := o["items"].([]any)
	if !isList {
		return data(o)
	}
	var all []any
	for _, item := range items {
		all = append(all, data(item.(map[string]any)))
	}
	return all
}

func (p *programs) source(ctx context.Context, s abi.Source) {
	if run := abi.RunFrom(ctx); run.Read != nil {
		run.Read(abi.Read{Source: s})
	}
}

func data(o map[string]any) any {
	name, _, _ := unstructured.NestedString(o, "metadata", "name")
	return []any{name, o["data"]}
}

// object returns an object whose content is a hash of the values that were read.
func object(kind, ns, name string, seen []any) map[string]any {
	js, err := json.Marshal(seen)
	if err != nil {
		panic(err)
	}
	meta := map[string]any{"name": name}
	if ns != "" {
		meta["namespace"] = ns
	}
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": meta, "data": map[string]any{"sum": fmt.Sprintf("%x", sha256.Sum256(js))}}
}

func packed(kind, ns, name string, seen []any) []byte {
	b, err := abi.AppendValue(nil, object(kind, ns, name, seen))
	if err != nil {
		panic(err)
	}
	return b
}

// state returns the content of all objects, without generated values.
func (w *world) state() map[string]any {
	out := map[string]any{}
	for _, o := range w.api.Objects() {
		meta := o["metadata"].(map[string]any)
		out[fmt.Sprint(o["kind"], "/", meta["name"])] = []any{o["data"], meta["labels"]}
	}
	return out
}

func (w *world) total() (n int) {
	w.programs.mu.Lock()
	defer w.programs.mu.Unlock()
	for _, runs := range w.programs.runs {
		n += runs
	}
	return n
}

// event is an event in a world. It reports whether it changes the content of an object or
// the way in which it runs.
type event func(w *world)

const objects = 6

// The instructions of programs: reads and writes.
var (
	readWords  = []string{"get:o0", "get:o1", "get:o2", "get:missing", "list:a", "list:b", "live:o1", "clock", "clock", "random", "metric", "fail", "requeue"}
	writeWords = []string{"child:x", "child:x", "child:x child:y", "none", "write", ""}
)

// randomEvent returns a random event.
func randomEvent(r *rand.Rand, n int) (name string, e event) {
	o := fmt.Sprintf("o%d", r.IntN(objects))
	switch r.IntN(12) {
	case 0, 1, 2:
		value := []string{"good", "bad", fmt.Sprint(r.IntN(3))}[r.IntN(3)]
		return "edit " + o + " " + value, func(w *world) { w.patch(configMaps, o, map[string]any{"data": map[string]any{"v": value}}) }
	case 3:
		program := randomProgram(r)
		group := []string{"a", "b"}[r.IntN(2)]
		return "program " + o + " " + program, func(w *world) {
			w.patch(configMaps, o, map[string]any{"data": map[string]any{"program": program}, "metadata": map[string]any{"labels": map[string]any{"group": group}}})
		}
	case 4:
		child := o + "-" + []string{"x", "y"}[r.IntN(2)]
		return "drift " + child, func(w *world) { w.patch(secrets, child, map[string]any{"data": map[string]any{"sum": "YQ=="}}) }
	case 5:
		child := o + "-" + []string{"x", "y"}[r.IntN(2)]
		return "delete child " + child, func(w *world) { w.delete(secrets, child) }
	case 6:
		program := randomProgram(r)
		return "replace " + o + " " + program, func(w *world) {
			w.delete(configMaps, o)
			passes(time.Second)
			w.create(o, program)
		}
	case 7:
		value := fmt.Sprint(r.IntN(3))
		return "setting " + value, func(w *world) {
			w.settings["x"] = value
			if _, err := w.life.Configure(w.t.Context(), maps.Clone(w.settings)); err != nil {
				w.t.Error(err)
			}
		}
	case 8:
		return "restart", func(w *world) { w.restart(n, func() {}) }
	case 9:
		value := fmt.Sprint(r.IntN(3))
		return "restart with an edit of " + o, func(w *world) {
			w.restart(n, func() { w.patch(configMaps, o, map[string]any{"data": map[string]any{"v": value}}) })
		}
	case 10:
		return "drift out-" + o, func(w *world) { w.patch(configMaps, "out-"+o, map[string]any{"data": map[string]any{"sum": "drift"}}) }
	}
	return "time", func(*world) { passes(21 * time.Minute) }
}

func randomProgram(r *rand.Rand) string {
	var steps []string
	for range r.IntN(3) {
		steps = append(steps, readWords[r.IntN(len(readWords))])
	}
	return strings.Join(append(steps, writeWords[r.IntN(len(writeWords))]), " ")
}

// restart runs an event without a process and then starts another process, in one of four
// cases with another module.
func (w *world) restart(n int, meanwhile func()) {
	w.t.Helper()
	w.end()
	meanwhile()
	w.start(n / 4)
}

func (w *world) create(name, program string) {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": map[string]any{"group": "a"}}, "data": map[string]any{"program": program},
	}}
	if _, err := w.client.Resource(configMaps).Namespace(w.ns).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
		w.t.Error(err)
	}
}

func (w *world) patch(kind schema.GroupVersionResource, name string, change map[string]any) {
	w.t.Helper()
	js, err := json.Marshal(change)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.client.Resource(kind).Namespace(w.ns).Patch(w.t.Context(), name, types.MergePatchType, js, metav1.PatchOptions{FieldManager: "test"})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

func (w *world) delete(kind schema.GroupVersionResource, name string) {
	w.t.Helper()
	err := w.client.Resource(kind).Namespace(w.ns).Delete(w.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// resync reconciles all objects, like --resync.
func (w *world) resync() {
	w.engine.Runtime.TriggerAll(w.t.Context(), abi.ReasonResync)
	passes(time.Second)
}

// TestMemo_WritesWhatIsWrittenWithout: random programs that read and write, on objects that
// change, are deleted and drift, with changing settings and modules and with restarts, lead
// to the same objects with a memo as without.
func TestMemo_WritesWhatIsWrittenWithout(t *testing.T) {
	var without, with int
	for seed := range uint64(12) {
		for _, kind := range []string{v1alpha1.MemoMemory, "directory"} {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				memo := kind
				if kind == "directory" {
					memo = filepath.Join(t.TempDir(), "memo")
				}
				plain, remembers := live(t, seed, v1alpha1.MemoOff), live(t, seed, memo)
				for i := range plain.states {
					if diff := cmp.Diff(plain.states[i], remembers.states[i]); diff != "" {
						t.Fatalf("after %s (-without +with the memo):\n%s", strings.Join(plain.events[:i], "\n"), diff)
					}
				}
				without, with = without+plain.runs, with+remembers.runs
			})
		}
	}
	t.Logf("%d runs without the memo, %d with it", without, with)
	if with > without*3/4 {
		t.Errorf("%d runs without the memo, %d with it: want a quarter less", without, with)
	}
}

// seen records the states of a world.
type seen struct {
	events []string
	states []map[string]any // after each event, and at the beginning
	runs   int
}

// live runs random events in a world, the same ones for a seed.
func live(t *testing.T, seed uint64, memo string) (l seen) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same each time
		<-time.After(17 * time.Second)      // no run is near the end of an hour
		w := newWorld(t, memo)
		for i := range objects {
			w.create(fmt.Sprintf("o%d", i), randomProgram(r))
		}
		for n := range 40 {
			passes(time.Second)
			w.resync()
			w.resync()
			l.states = append(l.states, w.state())
			name, e := randomEvent(r, n)
			l.events = append(l.events, name)
			e(w)
			passes(7*time.Minute - 2*time.Second)
		}
		l.runs = w.total()
		w.end()
	})
	return l
}
