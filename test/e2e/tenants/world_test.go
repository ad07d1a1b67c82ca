// SPDX-License-Identifier: Apache-2.0

package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// container is the memory limit of the container that the process is set up for, as by the chart.
const container = 1 << 30

// world is a process that serves two tenants.
type world struct {
	*testing.T

	attacker, victim *tenant
	process          *e2e.Process
	socket           string

	honest, looping *ocitest.Registry
	silent          []*ocitest.Registry // each has its own host, and never answers

	changes int // of the victim's Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, e2e.GeneratorCRD)
	devclustertest.Apply(t, cluster, []byte(v1alpha1.CRDs))
	w := &world{T: t, attacker: newTenant(t, cluster), victim: newTenant(t, cluster), socket: e2e.NewSocket(t), honest: ocitest.NewPlain(t)}
	w.looping = ocitest.NewPlain(t, func(rw http.ResponseWriter, req *http.Request, _ http.Handler) {
		http.Redirect(rw, req, req.URL.Path+"?again="+strconv.Itoa(time.Now().Nanosecond()), http.StatusTemporaryRedirect)
	})
	hosts := []string{"--insecure-registry", w.honest.Host, "--insecure-registry", w.looping.Host}
	for range 4 {
		r := ocitest.NewPlain(t, func(_ http.ResponseWriter, req *http.Request, _ http.Handler) { <-req.Context().Done() })
		w.silent, hosts = append(w.silent, r), append(hosts, "--insecure-registry", r.Host)
	}
	w.push("good:1", enginetest.Worse(enginetest.Good, 1))
	cmd := exec.Command("wasmctl", slices.Concat([]string{
		"serve", "--log-format", "json", "--cache-dir", t.TempDir(), "--kubeconfig", cluster.Kubeconfig(), "--socket", w.socket, "-n", w.attacker.ns, "-n", w.victim.ns,
		"--memory-budget", "512Mi", "--compile-memory", "768Mi", "--max-cache", "64Mi",
	}, hosts)...)
	cmd.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", container))
	w.process = e2e.Start(t, cmd)
	w.settle()
	return w
}

// push pushes a module to the honest registry.
func (w *world) push(image string, module []byte) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "m.wasm")
	e2e.Replace(w.T, file, module)
	if code, out := e2e.Exec(w.T, nil, "push", "oci://"+w.honest.Host+"/"+image, file, "--insecure-registry", w.honest.Host); code != e2e.ExitOK {
		w.Fatal(out)
	}
}

// settle creates the victim's Reconcilers, "runs" and "changes", and waits until they are ready.
func (w *world) settle() {
	w.Helper()
	v := w.victim
	v.must(v.create(w.Context(), "runs", "victim", map[string]any{
		"module": v.module("runs", "victim", compressed(e2e.ReadFile(w.T, e2e.Example(w.T, "configmapgenerator")))), "grant": map[string]any{"manifest": true},
	}))
	e2e.CreateGenerator(w.T, v.client, v.ns, "probe", "start")
	v.must(v.create(w.Context(), "changes", "victim", map[string]any{
		"module": v.module("m0", "victim", compressed(enginetest.Laborious(1, 500, 0))), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
		"selector": map[string]any{"matchLabels": map[string]any{"none": "such"}}, "rollout": map[string]any{"probation": "0s"},
	}))
	for _, name := range []string{"runs", "changes"} {
		v.until(reconcilers, name, "is ready", func(o *unstructured.Unstructured) bool { return hasReason(o, "Succeeded") })
	}
	v.until(e2e.ConfigMaps, "probe", "exists", func(*unstructured.Unstructured) bool { return true })
}

// seen is what the victim observes: the duration of each run, from the change of its object to that of the child, and
// of each change of the module of a Reconciler until the new module is ready.
type seen struct{ runs, changes []time.Duration }

// observe lets the victim work until ctx ends, but for one run and one change at least.
func (w *world) observe(ctx context.Context) (out seen) {
	child := &watched{resource: w.victim.in(e2e.ConfigMaps), name: "probe"}
	object := &watched{resource: w.victim.in(reconcilers), name: "changes"}
	defer child.close()
	defer object.close()
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; n == 0 || ctx.Err() == nil; n++ {
			content := fmt.Sprintf("%d-%d", w.changes, n)
			out.runs = append(out.runs, w.took(func() error {
				_, err := w.victim.patch(w.Context(), e2e.Generators, "probe", map[string]any{"spec": map[string]any{"content": content}})
				return errors.Join(err, child.until(w.Context(), func(o *unstructured.Unstructured) bool {
					return strings.Contains(fmt.Sprint(o.Object["data"]), content)
				}))
			}))
			e2e.Pause(ctx, 50*time.Millisecond)
		}
	})
	wg.Go(func() {
		for n := 0; n == 0 || ctx.Err() == nil; n++ {
			w.changes++
			name, module := fmt.Sprint("m", w.changes%2), enginetest.Laborious(1, 500, w.changes)
			w.victim.module(name, "victim", compressed(module))
			out.changes = append(out.changes, w.took(func() error {
				_, err := w.victim.patch(w.Context(), reconcilers, "changes", map[string]any{"spec": map[string]any{"module": ref(name)}})
				return errors.Join(err, object.until(w.Context(), func(o *unstructured.Unstructured) bool {
					live := read(o).Status.Live
					return hasReason(o, "Succeeded") && live != nil && live.Digest == load.DigestOf(module)
				}))
			}))
			e2e.Pause(ctx, 250*time.Millisecond)
		}
	})
	wg.Wait()
	return out
}

func (w *world) took(do func() error) time.Duration {
	start := time.Now()
	w.victim.must(do())
	return time.Since(start)
}

// attack is a way to attack.
type attack struct {
	name string
	// spec returns the spec of the i-th Reconciler.
	spec func(w *world, i int) map[string]any
	// user, if not nil, is what the tenant does repeatedly with its own rights.
	user func(w *world, ctx context.Context, step int)
}

// start creates n Reconcilers of an attack, and returns a function that ends what the user of the attack does.
func (w *world) start(a attack, n int) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var wg sync.WaitGroup
	if a.user != nil {
		wg.Go(func() {
			for step := 0; ctx.Err() == nil; step++ {
				a.user(w, ctx, step)
				e2e.Pause(ctx, 20*time.Millisecond)
			}
		})
	}
	for i := range n {
		w.attacker.must(w.attacker.create(w.Context(), a.reconciler(i), a.name, a.spec(w, i)))
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func (a *attack) reconciler(i int) string { return fmt.Sprint(a.name, "-", i) }

// end deletes everything of an attack, and waits until it is gone.
func (w *world) end(a attack) {
	w.Helper()
	of := metav1.ListOptions{LabelSelector: a.name}
	w.attacker.must(w.attacker.in(reconcilers).DeleteCollection(w.Context(), metav1.DeleteOptions{}, of))
	enginetest.Until(w, "the Reconcilers of "+a.name+" are gone", func() bool {
		list, err := w.attacker.in(reconcilers).List(w.Context(), of)
		return err == nil && len(list.Items) == 0
	})
	w.attacker.must(w.attacker.in(e2e.ConfigMaps).DeleteCollection(w.Context(), metav1.DeleteOptions{}, of))
}

// suspend suspends a Reconciler of an attack, and returns how long it took.
func (w *world) suspend(name string) time.Duration {
	w.Helper()
	start := time.Now()
	_, err := w.attacker.patch(w.Context(), reconcilers, name, map[string]any{"spec": map[string]any{"suspend": true}})
	w.attacker.must(err)
	object := &watched{resource: w.attacker.in(reconcilers), name: name}
	defer object.close()
	w.attacker.must(object.until(w.Context(), func(o *unstructured.Unstructured) bool { return hasReason(o, "Suspended") }))
	return time.Since(start)
}

// remove deletes a Reconciler of an attack, and returns how long it took.
func (w *world) remove(name string) time.Duration {
	w.Helper()
	start := time.Now()
	w.attacker.must(w.attacker.in(reconcilers).Delete(w.Context(), name, metav1.DeleteOptions{}))
	enginetest.Until(w, name+" is gone", func() bool {
		_, err := w.attacker.in(reconcilers).Get(w.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	return time.Since(start)
}

// failures returns the number of runs of the victim that have failed, except for those that a slow API server or a
// busy machine can cause.
func (w *world) failures() (n uint64) {
	w.Helper()
	n = uint64(w.process.Count(`"controller":"`+w.victim.ns+".", "memory budget exhausted")) // a run without an instance
	controllers := e2e.ControllersOf(w.T, w.socket)
	for _, name := range []string{"runs", "changes"} {
		failures := controllers[w.victim.ns+"."+name].Failures
		n += failures[string(abi.FailureMemory)] + failures[string(abi.FailureTrap)] + failures[string(abi.FailureOutput)]
	}
	return n
}

// memory returns the resident memory of the process, and its peak since forgetPeak.
func (w *world) memory() (now, peak int64) {
	w.Helper()
	for line := range strings.Lines(string(e2e.ReadFile(w.T, fmt.Sprintf("/proc/%d/status", w.process.Cmd.Process.Pid)))) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak
}

func (w *world) forgetPeak() {
	w.Helper()
	w.attacker.must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.process.Cmd.Process.Pid), []byte("5"), 0o200))
}
