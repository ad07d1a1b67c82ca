// SPDX-License-Identifier: Apache-2.0

package tenants_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// attacks returns the ways to attack, each with any number of Reconcilers: those with the names, or all.
func attacks(t *testing.T, names ...string) []attack {
	t.Helper()
	return slices.DeleteFunc([]attack{
		{name: "redirects", spec: func(w *world, i int) map[string]any { return image(w.looping.Host, i, nil) }},
		{name: "silence", spec: func(w *world, i int) map[string]any { return image(w.silent[i%len(w.silent)].Host, i, nil) }},
		{name: "follow", spec: func(w *world, i int) map[string]any {
			return image(w.honest.Host, 0, map[string]any{"follow": "1ms"})
		}},
		{name: "big-modules", spec: func(w *world, i int) map[string]any {
			name := fmt.Sprint("big-modules-", i)
			return onObjects(w.attacker.module(name, "big-modules", compressed(enginetest.Worse(enginetest.Good, 0)), zeros(), compressed(padding(1+i))))
		}},
		{name: "bombs", spec: func(w *world, i int) map[string]any {
			name := fmt.Sprint("bombs-", i)
			return onObjects(w.attacker.module(name, "bombs", compressed(enginetest.Laborious(20, 20_000, i))))
		}},
		{name: "selectors", spec: func(w *world, i int) map[string]any {
			large(w, "selectors", i)
			spec := with(w, "selectors", enginetest.Worse(enginetest.Good, 0))
			spec["selector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "selectors", "operator": "NotIn", "values": []any{fmt.Sprint("no-", i)}}}}
			return spec
		}},
		{name: "huge-objects", spec: func(w *world, i int) map[string]any {
			large(w, "huge-objects", i)
			spec := with(w, "huge-objects", enginetest.Worse(enginetest.Good, 0))
			spec["selector"] = map[string]any{"matchLabels": map[string]any{"huge-objects": "true"}}
			return spec
		}, user: func(w *world, ctx context.Context, step int) {
			_, _ = w.attacker.patch(ctx, e2e.ConfigMaps, fmt.Sprint("huge-objects-large-", step%25), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"step": fmt.Sprint(step)}}})
		}},
		{name: "holders", spec: func(w *world, _ int) map[string]any { return with(w, "holders", wasm.Holds) }},
		{name: "spinners", spec: func(w *world, _ int) map[string]any {
			return with(w, "spinners", enginetest.Worse(enginetest.Spins, 0))
		}},
		{name: "requeues", spec: func(w *world, _ int) map[string]any {
			return with(w, "requeues", enginetest.Worse(enginetest.Requeues, 0))
		}},
		{name: "logs", spec: func(w *world, _ int) map[string]any {
			return with(w, "logs", hostile(t, "flood_log"))
		}, user: touch("logs")},
		{name: "events", spec: func(w *world, _ int) map[string]any {
			return with(w, "events", hostile(t, "flood_events"))
		}, user: touch("events")},
		{name: "writes", spec: func(w *world, i int) map[string]any {
			// Two Reconcilers write different values, so that each write is a change for the others.
			patch := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.attacker.ns, "patchType": "merge", "patch": map[string]any{"data": map[string]any{"by": fmt.Sprint(i % 2)}}}
			var ops []enginetest.Operation
			for o := range objects {
				r := map[string]any{"name": fmt.Sprint("writes-", o)}
				maps.Copy(r, patch)
				ops = append(ops, enginetest.Operation{Op: abi.OpAPIPatch, Request: r})
			}
			spec := with(w, fmt.Sprint("writes-by-", i%2), enginetest.Scripted(t, enginetest.MayWrite("configmaps"), ops...))
			spec["grant"] = map[string]any{"manifest": true}
			return spec
		}},
		{name: "churn", spec: func(w *world, _ int) map[string]any {
			return with(w, "churn", enginetest.Worse(enginetest.Good, 0))
		}, user: func(w *world, ctx context.Context, step int) {
			name := fmt.Sprint("churn-more-", step%20)
			_ = w.attacker.in(reconcilers).Delete(ctx, name, metav1.DeleteOptions{}) // it may not exist
			_ = w.attacker.create(ctx, name, "churn", onObjects(ref("churn")))       // it may still exist
		}},
		{name: "bad-specs", spec: func(w *world, i int) map[string]any {
			specs := badSpecs(w)
			return specs[i%len(specs)]
		}},
	}, func(a attack) bool { return len(names) > 0 && !slices.Contains(names, a.name) })
}

// objects is the number of objects that each Reconciler of an attack runs for.
const objects = 4

// image returns a spec with the module of an image.
func image(host string, i int, module map[string]any) map[string]any {
	out := map[string]any{"image": fmt.Sprintf("%s/good%s:1", host, strings.Repeat("x", i%2))}
	maps.Copy(out, module)
	return onObjects(out)
}

// onObjects returns a spec whose objects are ConfigMaps.
func onObjects(module map[string]any) map[string]any {
	return map[string]any{
		"module": module, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "concurrency": int64(objects), "rollout": map[string]any{"probation": "0s"},
		"selector": map[string]any{"matchLabels": map[string]any{"object": "true"}},
	}
}

// with returns a spec with a module, which it stores, and makes its objects.
func with(w *world, name string, module []byte) map[string]any {
	attack, _, _ := strings.Cut(name, "-by-")
	for i := range objects {
		o := object("v1", "ConfigMap", fmt.Sprint(attack, "-", i), attack, nil)
		labels := o.GetLabels()
		labels["object"] = "true"
		o.SetLabels(labels)
		_, _ = w.attacker.in(e2e.ConfigMaps).Create(w.Context(), o, metav1.CreateOptions{}) // it may exist
	}
	return onObjects(w.attacker.module(name, attack, compressed(module)))
}

// touch returns what changes the objects of an attack.
func touch(attack string) func(*world, context.Context, int) {
	return func(w *world, ctx context.Context, step int) {
		_, _ = w.attacker.patch(ctx, e2e.ConfigMaps, fmt.Sprint(attack, "-", step%objects), map[string]any{"data": map[string]any{"step": fmt.Sprint(step)}}) // it may not exist
	}
}

// large makes one of 25 ConfigMaps of 900 KB.
func large(w *world, attack string, i int) {
	if i < 25 {
		w.attacker.configMap(fmt.Sprint(attack, "-large-", i), attack, map[string]any{"data": map[string]any{"large": strings.Repeat(string(rune('a'+i)), 900_000)}})
	}
}

// hostile returns a module of the conformance tests.
func hostile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../../host/conformance/hostile/guests/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// zeros is most of a big module.
var zeros = sync.OnceValue(func() []byte { return compressed(padding(100 << 20)) })

// padding returns a custom section of n zeros.
func padding(n int) []byte {
	return append(append([]byte{0}, binary.AppendUvarint(nil, uint64(n+1))...), make([]byte, n+1)...)
}

// badSpecs are those that the API server accepts, and that can never run.
func badSpecs(w *world) []map[string]any {
	spec := func(change map[string]any) map[string]any {
		out := with(w, "bad-specs", enginetest.Worse(enginetest.Good, 0))
		maps.Copy(out, change)
		return out
	}
	return []map[string]any{
		spec(map[string]any{"module": map[string]any{"image": "nowhere.invalid/m:1"}}),
		spec(map[string]any{"module": ref("absent")}),
		spec(map[string]any{"for": map[string]any{"apiVersion": "no.such/v1", "kind": "Kind"}}),
		spec(map[string]any{"for": map[string]any{"apiVersion": "v1", "kind": "Node"}}),
		spec(map[string]any{"serviceAccountName": "absent"}),
		spec(map[string]any{"limits": map[string]any{"memory": "100Gi"}}),
		spec(map[string]any{"configFrom": []any{map[string]any{"secretKeyRef": map[string]any{"name": "absent", "key": "k"}}}}),
		spec(map[string]any{"owns": []any{map[string]any{"apiVersion": "v1", "kind": "Secret"}}}),
	}
}
