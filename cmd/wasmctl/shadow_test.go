package main

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/shadow"
)

// Modes of the guest worse.wasm that write.
const (
	modeRequeues = byte(iota + 6)
	modeDeclares
	modeScript
)

// operation is one that modeScript asks for.
type operation struct {
	op  abi.Op
	req map[string]any
}

// scripted is the guest worse.wasm asking for operations, with a manifest.
func scripted(t *testing.T, m *abi.Manifest, ops ...operation) []byte {
	t.Helper()
	module := worse(modeScript, 0)
	at := bytes.Index(module, []byte("script:")) + len("script:")
	for _, o := range ops {
		req, err := abi.AppendValue(nil, o.req)
		if err != nil {
			t.Fatal(err)
		}
		for number, op := range abi.Ops {
			if op == o.op {
				binary.LittleEndian.PutUint32(module[at:], uint32(number))
			}
		}
		binary.LittleEndian.PutUint32(module[at+4:], uint32(len(req)))
		at += 8 + copy(module[at+8:], req)
	}
	module, err := host.WithManifest(module, m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// colored is the guest worse.wasm declaring a ConfigMap with a color of four
// letters.
func colored(t *testing.T, color string, m *abi.Manifest) []byte {
	t.Helper()
	module, err := host.WithManifest(bytes.Replace(worse(modeDeclares, 0), []byte("blue"), []byte(color), 1), m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func mayWrite(resources ...string) *abi.Manifest {
	m := &abi.Manifest{Version: "1"}
	for _, r := range resources {
		m.Capabilities = append(m.Capabilities, abi.Capability{Resource: r, Verbs: []string{"get", "create", "patch", "update", "delete"}})
	}
	return m
}

// shadow has the live module reconcile all objects, and compares that with a
// module's runs.
func (w *swapping) shadow(module []byte, runs int) (told []admin.Shadowed, sum shadow.Summary) {
	w.t.Helper()
	how := admin.ShadowHow{For: time.Minute, Count: runs, All: true}
	sum, err := w.session.Shadow(w.t.Context(), w.session.name, module, how, func(s admin.Shadowed) error {
		told = append(told, s)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return told, sum
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

// TestShadow_Declared: a module that declares the same does the same; another
// value, another action, a trap and a child that its policy does not allow are
// told; nothing of it is written, and the live one goes on.
func TestShadow_Declared(t *testing.T) {
	w := newSwapping(t, colored(t, "blue", mayWrite("configmaps")), swapOptions())
	w.putAll(1, 1)
	same := mayWrite("configmaps")
	same.Version = "2"
	if told, sum := w.shadow(colored(t, "blue", same), 1); sum.Different != 0 || sum.Runs != 1 || len(told) != 1 || len(told[0].Differences) > 0 {
		t.Errorf("the same: %+v, %+v", sum, told)
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
		"color":   {colored(t, "pink", mayWrite("configmaps")), []shadow.Difference{color}},
		"action":  {withManifest(t, modeRequeues, &abi.Manifest{}), []shadow.Difference{gone, {Of: shadow.OfAction, Live: "await change", Shadow: "requeue after 0s"}}},
		"traps":   {withManifest(t, modeTraps, &abi.Manifest{}), []shadow.Difference{gone, {Of: shadow.OfError, Shadow: "trap"}}},
		"no verb": {colored(t, "blue", &abi.Manifest{}), []shadow.Difference{{Of: shadow.OfError, Shadow: "declares"}}},
	} {
		told, sum := w.shadow(c.module, 1)
		if sum.Different != 1 || len(told) != 1 {
			t.Errorf("%s: %+v", name, sum)
			continue
		}
		for i := range told[0].Differences {
			if d := &told[0].Differences[i]; d.Of == shadow.OfError { // what follows are words
				text, _, _ := strings.Cut(fmt.Sprint(d.Shadow), " ")
				d.Shadow = strings.TrimSuffix(text, ":")
			}
		}
		if diff := cmp.Diff(c.want, told[0].Differences); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := w.made(); got != "made=blue" {
			t.Errorf("%s: there are %s", name, got)
		}
	}
	if got := w.session.module.Generation(); got != 1 || len(w.session.module.Generations()) != 1 {
		t.Errorf("generation %d is live; left %v", got, w.session.module.Generations())
	}
	w.wantNoFaults()
}

// TestShadow_Operations: reads are answered as the live run's were although the
// object has changed since, writes as the live one's; what only the shadow asks
// for is read now, or sent with dryRun.
func TestShadow_Operations(t *testing.T) {
	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	create := operation{abi.OpAPICreate, map[string]any{"object": w.configMap("new", "blue")}}
	get := operation{abi.OpAPIGet, w.named("ConfigMap", "new")}
	remove := operation{abi.OpAPIDelete, w.named("ConfigMap", "new")}
	live := scripted(t, mayWrite("configmaps", "secrets"), create, get, remove)
	w.session.opts.allowMoreRights = true
	w.onProbation(time.Hour)
	w.mustSwap(live)
	w.putAll(1, 1)

	again := mayWrite("configmaps", "secrets")
	again.Version = "2"
	// It creates what was there meanwhile and is gone, and reads it: only the
	// recorded answers make that the same.
	if told, sum := w.shadow(scripted(t, again, create, get, remove), 1); sum.Different != 0 {
		t.Errorf("the same: %+v", told)
	}
	pink := operation{abi.OpAPICreate, map[string]any{"object": w.configMap("new", "pink")}}
	secret := operation{abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": w.ns}, "stringData": map[string]any{"password": "hunter2"},
	}}}
	told, sum := w.shadow(scripted(t, again, pink, get, secret), 1)
	js, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`"path":"data.color","live":"blue","shadow":"pink"`, `"write":"create v1/Secret ` + w.ns + `/s"`, `"write":"delete v1/ConfigMap`, `[redacted #`}; !containsAll(string(js), want) {
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
	// A get of what nobody has read before goes to the API server; a right that the
	// other lacks is an error of its own.
	told, _ = w.shadow(scripted(t, &abi.Manifest{}, create, get, remove), 1)
	if len(told) != 1 || len(told[0].Differences) == 0 || told[0].Differences[len(told[0].Differences)-1].Of != shadow.OfError {
		t.Errorf("without rights: %+v", told)
	}
	w.wantNoFaults()
}

// TestShadow_NothingWaitsForIt: what the shadow has no time for is dropped and
// counted; a second one is refused; it ends with its time or its user.
func TestShadow_NothingWaitsForIt(t *testing.T) {
	x := &shadowing{runs: make(chan *recording, maxShadowed)}
	for range maxShadowed + 3 {
		x.offer(&recording{})
	}
	x.end()
	x.offer(&recording{})
	x.end()
	if x.dropped != 3 || len(x.runs) != maxShadowed {
		t.Errorf("%d dropped, %d wait", x.dropped, len(x.runs))
	}

	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	w.putAll(2, 1)
	begun := make(chan struct{})
	release := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := w.session.Shadow(t.Context(), w.session.name, worse(modeGood, 1), admin.ShadowHow{For: time.Hour, Count: 1, All: true}, func(admin.Shadowed) error {
			close(begun)
			<-release
			return errors.New("the user has gone")
		})
		ended <- err
	}()
	<-begun
	tell := func(admin.Shadowed) error { return nil }
	if _, err := w.session.Shadow(t.Context(), w.session.name, worse(modeGood, 2), admin.ShadowHow{For: time.Hour}, tell); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("a second shadow: %v", err)
	}
	w.putAll(2, 2) // the live one goes on
	close(release)
	if err := <-ended; err == nil || err.Error() != "the user has gone" {
		t.Errorf("ended with %v", err)
	}
	sum, err := w.session.Shadow(t.Context(), w.session.name, worse(modeGood, 3), admin.ShadowHow{For: time.Millisecond}, tell)
	if err != nil || sum.Runs != 0 {
		t.Errorf("after its time: %+v %v", sum, err)
	}
	if n := len(w.session.module.Generations()); n != 1 {
		t.Errorf("%d generations are left", n)
	}
}

func TestDifferenceText_IsOneLine(t *testing.T) {
	for _, tt := range []struct {
		d    shadow.Difference
		want string
	}{
		{shadow.Difference{Of: shadow.OfWrite, Write: "apply v1/ConfigMap a/b", Path: "data.x", Live: "1\n2", Shadow: int64(3)}, `~ apply v1/ConfigMap a/b data.x: "1\n2" -> 3`},
		{shadow.Difference{Of: shadow.OfWrite, Write: "delete v1/Pod p", Live: true}, `- delete v1/Pod p: true`},
		{shadow.Difference{Of: shadow.OfError, Shadow: "trap: x"}, `+ error: trap: x`},
	} {
		if got := differenceText(&tt.d); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	long := shadow.Difference{Of: shadow.OfWrite, Write: "w", Live: strings.Repeat("x", 1000) + "y", Shadow: strings.Repeat("x", 1000) + "z"}
	if got := differenceText(&long); len(got) > 300 || !containsAll(got, []string{`xy"`, `xz"`}) {
		t.Errorf("where they part is not shown: %s", got)
	}
}

// TestShadow_EndsWithItsController: one that waits for runs does not hold up a
// process that stops.
func TestShadow_EndsWithItsController(t *testing.T) {
	ended := make(chan error, 1)
	t.Run("until it stops", func(t *testing.T) {
		w := newSwapping(t, worse(modeGood, 0), swapOptions())
		w.putAll(1, 1)
		parent := context.WithoutCancel(t.Context()) // whoever asked does not go
		begun := make(chan struct{})
		go func() {
			_, err := w.session.Shadow(parent, w.session.name, worse(modeGood, 1), admin.ShadowHow{For: time.Hour, All: true}, func(admin.Shadowed) error {
				close(begun)
				return nil
			})
			ended <- err
		}()
		<-begun
	})
	if err := <-ended; !errors.Is(err, errStopping) {
		t.Errorf("ended with %v", err)
	}
}
