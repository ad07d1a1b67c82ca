// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// shadow makes the live module reconcile all objects, and compares its runs with those of a
// module.
func (w *swapping) shadow(module []byte, runs int) (reported []replay.Compared, sum shadow.Summary) {
	w.t.Helper()
	o := ShadowOptions{Limit: replay.Limit{For: time.Minute, Count: runs}, All: true}
	sum, err := w.life.Shadow(w.t.Context(), Bytes(module), o, func(c replay.Compared) error {
		reported = append(reported, c)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return reported, sum
}

// made returns the ConfigMaps of the namespace as "name=color".
func (w *swapping) made() string {
	w.t.Helper()
	list, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		if color, ok, _ := unstructured.NestedString(o.Object, "data", "color"); ok {
			out = append(out, o.GetName()+"="+color)
		}
	}
	return strings.Join(out, " ")
}

func (w *swapping) configMap(name, color string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": w.ns}, "data": map[string]any{"color": color},
	}
}

func (w *swapping) named(kind, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "namespace": w.ns, "name": name}
}

// TestShadow_Declared: a module that declares the same objects has no differences. Another
// value, another action, a trap and a child that its policy does not allow are reported;
// none of them is written, and the live module continues.
func TestShadow_Declared(t *testing.T) {
	w := newSwapping(t, enginetest.Colored(t, "blue", enginetest.MayWrite("configmaps")), swapOptions())
	w.putAll(1, 1)
	same := enginetest.MayWrite("configmaps")
	same.Version = "2"
	if reported, sum := w.shadow(enginetest.Colored(t, "blue", same), 1); sum.Different != 0 || sum.Runs != 1 || len(reported) != 1 || len(reported[0].Differences) > 0 {
		t.Errorf("the same: %+v, %+v", sum, reported)
	}
	declares := func(path string) shadow.Difference {
		return shadow.Difference{Of: shadow.OfWrite, Write: "declare v1/ConfigMap made", Path: path}
	}
	color := declares("data.color")
	color.Live, color.Shadow = "blue", "pink"
	gone := declares("")
	gone.Live = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "made"}, "data": map[string]any{"color": "blue"}}
	for name, c := range map[string]struct {
		module []byte
		want   []shadow.Difference
	}{
		"color":   {enginetest.Colored(t, "pink", enginetest.MayWrite("configmaps")), []shadow.Difference{color}},
		"action":  {enginetest.WithManifest(t, enginetest.Requeues, &abi.Manifest{}), []shadow.Difference{gone, {Of: shadow.OfAction, Live: "await change", Shadow: "requeue after 0s"}}},
		"traps":   {enginetest.WithManifest(t, enginetest.Traps, &abi.Manifest{}), []shadow.Difference{gone, {Of: shadow.OfError, Shadow: "trap"}}},
		"no verb": {enginetest.Colored(t, "blue", &abi.Manifest{}), []shadow.Difference{{Of: shadow.OfError, Shadow: "declares"}}},
	} {
		reported, sum := w.shadow(c.module, 1)
		if sum.Different != 1 || len(reported) != 1 {
			t.Errorf("%s: %+v", name, sum)
			continue
		}
		for i := range reported[0].Differences {
			if d := &reported[0].Differences[i]; d.Of == shadow.OfError { // the rest of the text is free-form
				text, _, _ := strings.Cut(fmt.Sprint(d.Shadow), " ")
				d.Shadow = strings.TrimSuffix(text, ":")
			}
		}
		if diff := cmp.Diff(c.want, reported[0].Differences); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := w.made(); got != "made=blue" {
			t.Errorf("%s: there are %s", name, got)
		}
	}
	if got := w.engine.Module.Revision(); got != 1 || len(w.engine.Module.Revisions()) != 1 {
		t.Errorf("revision %d is live; left %v", got, w.engine.Module.Revisions())
	}
	w.wantNoFaults()
}

// TestShadow_Operations: reads return the recorded answers of the live run although the
// object has changed since, and so do writes. Requests that only the shadow sends are read
// now, or sent with dryRun.
func TestShadow_Operations(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.AllowMoreRights = new(true)
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), opts)
	create := enginetest.Operation{Op: abi.OpAPICreate, Request: map[string]any{"object": w.configMap("new", "blue")}}
	get := enginetest.Operation{Op: abi.OpAPIGet, Request: w.named("ConfigMap", "new")}
	remove := enginetest.Operation{Op: abi.OpAPIDelete, Request: w.named("ConfigMap", "new")}
	live := enginetest.Scripted(t, enginetest.MayWrite("configmaps", "secrets"), create, get, remove)
	w.onProbation(time.Hour)
	w.mustSwap(live)
	w.putAll(1, 1)

	again := enginetest.MayWrite("configmaps", "secrets")
	again.Version = "2"
	// It creates and reads an object that existed in the meantime and is gone: only the
	// recorded answers lead to the same result.
	if reported, sum := w.shadow(enginetest.Scripted(t, again, create, get, remove), 1); sum.Different != 0 {
		t.Errorf("the same: %+v", reported)
	}
	pink := enginetest.Operation{Op: abi.OpAPICreate, Request: map[string]any{"object": w.configMap("new", "pink")}}
	secret := enginetest.Operation{Op: abi.OpAPICreate, Request: map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": w.ns}, "stringData": map[string]any{"password": "hunter2"},
	}}}
	reported, sum := w.shadow(enginetest.Scripted(t, again, pink, get, secret), 1)
	js, err := json.Marshal(reported)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`"path":"data.color","live":"blue","shadow":"pink"`, `"write":"create v1/Secret ` + w.ns + `/s"`, `"write":"delete v1/ConfigMap`, `[redacted #`}; !enginetest.ContainsAll(string(js), want...) {
		t.Errorf("told %s", js)
	}
	if strings.Contains(string(js), "hunter2") || strings.Contains(string(js), `"error"`) {
		t.Errorf("told %s", js)
	}
	if sum.OfWrites != 1 || sum.OfErrors != 0 {
		t.Errorf("%+v", sum)
	}
	if got := w.made(); got != "" {
		t.Errorf("there are %s", got)
	}
	// A get of an object that no run has read goes to the API server; a right that only the
	// shadow lacks is an error of its own.
	reported, _ = w.shadow(enginetest.Scripted(t, &abi.Manifest{}, create, get, remove), 1)
	if len(reported) != 1 || len(reported[0].Differences) == 0 || reported[0].Differences[len(reported[0].Differences)-1].Of != shadow.OfError {
		t.Errorf("without rights: %+v", reported)
	}
	w.wantNoFaults()
}

// TestShadow_NothingWaitsForIt: a second shadow is refused; a shadow ends with its time or
// its user.
func TestShadow_NothingWaitsForIt(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.putAll(2, 1)
	started := make(chan struct{})
	release := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := w.life.Shadow(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 1)), ShadowOptions{Limit: replay.Limit{For: time.Hour, Count: 1}, All: true}, func(replay.Compared) error {
			close(started)
			<-release
			return errors.New("the user has gone")
		})
		ended <- err
	}()
	<-started
	report := func(replay.Compared) error { return nil }
	if _, err := w.life.Shadow(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 2)), ShadowOptions{Limit: replay.Limit{For: time.Hour}}, report); !errors.Is(err, replay.ErrShadowed) {
		t.Errorf("a second shadow: %v", err)
	}
	w.putAll(2, 2) // the live module continues
	close(release)
	if err := <-ended; err == nil || err.Error() != "the user has gone" {
		t.Errorf("ended with %v", err)
	}
	sum, err := w.life.Shadow(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 3)), ShadowOptions{Limit: replay.Limit{For: time.Millisecond}}, report)
	if err != nil || sum.Runs != 0 {
		t.Errorf("after its time: %+v %v", sum, err)
	}
	if n := len(w.engine.Module.Revisions()); n != 1 {
		t.Errorf("%d revisions are left", n)
	}
}

// TestShadow_EndsWithItsController: a shadow that waits for runs does not delay a process
// that stops.
func TestShadow_EndsWithItsController(t *testing.T) {
	ended := make(chan error, 1)
	t.Run("until it stops", func(t *testing.T) {
		w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
		w.putAll(1, 1)
		parent := context.WithoutCancel(t.Context()) // the client stays connected
		started := make(chan struct{})
		go func() {
			_, err := w.life.Shadow(parent, Bytes(enginetest.Worse(enginetest.Good, 1)), ShadowOptions{Limit: replay.Limit{For: time.Hour}, All: true}, func(replay.Compared) error {
				close(started)
				return nil
			})
			ended <- err
		}()
		<-started
	})
	if err := <-ended; !errors.Is(err, ErrStopping) {
		t.Errorf("ended with %v", err)
	}
}
