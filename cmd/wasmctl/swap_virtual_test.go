package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// watchable is an API server in memory with watches, which look again after each
// write. It implements http.RoundTripper.
type watchable struct {
	*memapi.Server

	mu    sync.Mutex
	wrote chan struct{} // closed by the next write; guarded by mu
}

func newWatchable() *watchable {
	return &watchable{Server: memapi.New(memapi.Config{}), wrote: make(chan struct{})}
}

// RoundTrip implements http.RoundTripper.
func (w *watchable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		res, err := w.Server.RoundTrip(r)
		if r.Method != http.MethodGet {
			w.mu.Lock()
			close(w.wrote)
			w.wrote = make(chan struct{})
			w.mu.Unlock()
		}
		return res, err
	}
	body, stream := io.Pipe()
	go func() { _ = stream.CloseWithError(w.stream(r, json.NewEncoder(stream))) }()
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r,
	}, nil
}

type watchLine struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// stream writes the events of one watch until its time is over.
func (w *watchable) stream(r *http.Request, out *json.Encoder) error {
	q := r.URL.Query()
	seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
	if err != nil {
		seconds = 300
	}
	over := time.After(time.Duration(seconds) * time.Second)
	since, _ := strconv.Atoi(q.Get("resourceVersion")) // none: 0
	initial := q.Get("sendInitialEvents") == "true"
	seen := map[string]map[string]any{}
	for first := true; ; first = false {
		w.mu.Lock()
		wrote := w.wrote
		w.mu.Unlock()
		items, version, err := w.list(r)
		if err != nil {
			return err
		}
		for _, line := range changes(seen, items, first && !initial, since) {
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		if first && initial {
			if err := out.Encode(bookmark(items, version)); err != nil {
				return err
			}
		}
		select {
		case <-wrote:
		case <-over:
			return io.EOF
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// bookmark ends the objects that were there before.
func bookmark(items []map[string]any, version string) watchLine {
	kind := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	if len(items) > 0 {
		kind = items[0]
	}
	return watchLine{"BOOKMARK", map[string]any{"apiVersion": kind["apiVersion"], "kind": kind["kind"], "metadata": map[string]any{
		"resourceVersion": version, "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
	}}}
}

// changes says what is new, and notes it. What is not newer than since, at first,
// is known already.
func changes(seen map[string]map[string]any, items []map[string]any, known bool, since int) (lines []watchLine) {
	there := map[string]bool{}
	for _, o := range items {
		meta := o["metadata"].(map[string]any)
		name := fmt.Sprint(meta["namespace"], "/", meta["name"])
		there[name] = true
		version, _ := strconv.Atoi(fmt.Sprint(meta["resourceVersion"]))
		old, had := seen[name]
		seen[name] = o
		switch {
		case known && version <= since:
		case !had:
			lines = append(lines, watchLine{"ADDED", o})
		case old["metadata"].(map[string]any)["resourceVersion"] != meta["resourceVersion"]:
			lines = append(lines, watchLine{"MODIFIED", o})
		}
	}
	for name, o := range seen {
		if !there[name] {
			delete(seen, name)
			lines = append(lines, watchLine{"DELETED", o})
		}
	}
	return lines
}

func (w *watchable) list(r *http.Request) (items []map[string]any, version string, err error) {
	req := r.Clone(r.Context())
	q := url.Values{"labelSelector": {r.URL.Query().Get("labelSelector")}}
	req.URL.RawQuery = q.Encode()
	res, err := w.Server.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	var list struct {
		APIVersion, Kind string
		Metadata         struct{ ResourceVersion string }
		Items            []map[string]any
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return nil, "", err
	}
	for _, o := range list.Items { // a list's items need not say what they are
		if o["kind"] == nil {
			o["apiVersion"], o["kind"] = list.APIVersion, list.Kind[:len(list.Kind)-len("List")]
		}
	}
	return list.Items, list.Metadata.ResourceVersion, nil
}

// virtually runs a session on ConfigMaps in memory, in virtual time.
func virtually(t *testing.T, module []byte, objects int, test func(w *swapping)) {
	known := make(chan os.Signal, 1) // its goroutine begins outside of the bubble
	signal.Notify(known, syscall.SIGHUP)
	defer signal.Stop(known)
	synctest.Test(t, func(t *testing.T) {
		api := newWatchable()
		w := &swapping{t: t, ns: "shop"}
		for i := range objects {
			err := api.Put(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": objectName(i), "namespace": w.ns, "labels": map[string]any{"object": objectName(i)},
			}, "spec": map[string]any{"text": fmt.Sprint("1-", i)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		opts := swapOptions()
		opts.forKind, opts.namespaces, opts.module, opts.cacheDir, opts.probation = "configmaps", []string{w.ns}, "worse.wasm", "none", time.Minute
		log := slog.New(quiet{slog.NewTextHandler(t.Output(), nil)})
		p := &process{opts: &opts.processOptions, log: log}
		var err error
		if p.identity, err = newIdentity(&rest.Config{Host: "http://memory", Transport: api, QPS: -1}, log); err != nil {
			t.Fatal(err)
		}
		p.resolver = kubeapi.NewResolver(p.client, log)
		if err := p.bounds(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		w.session = &session{process: p, opts: &opts.controllerOptions, log: log}
		p.want(w.session.opts).loaded = w.session
		if err := w.session.load(ctx, module); err != nil {
			t.Fatal(err)
		}
		w.observer = newObserver(w.session.guests)
		w.session.guests = w.observer
		ended := make(chan error, 1)
		go func() { ended <- p.run(ctx, nil) }()
		test(w)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
}

// lastBy is the generation of an object's last run that succeeded.
func (w *swapping) lastBy(i int) uint64 {
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	return w.observer.by[w.key(i)]
}

// passes lets virtual time pass, and then everything happen that is due.
func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *swapping) wantState(when string, number uint64, want string) {
	w.t.Helper()
	if got := w.stateOf(number); got != want {
		w.t.Errorf("%s generation %d is %q, want %q", when, number, got, want)
	}
}

// TestSwap_InVirtualTime holds the times of probation, canary and rollback, to
// the second, with real guests on the whole of a session.
func TestSwap_InVirtualTime(t *testing.T) {
	const objects = 6
	virtually(t, worse(modeGood, 0), objects, func(w *swapping) {
		all := func(generation uint64) {
			w.t.Helper()
			for i := range objects {
				if got := w.lastBy(i); got != generation {
					w.t.Errorf("o%d was last run by generation %d, want %d", i, got, generation)
				}
			}
		}
		passes(time.Second)
		all(1)

		second := w.mustSwap(worse(modeGood, 1))
		passes(59 * time.Second)
		all(second)
		w.wantState("before the end of its probation", second, "probation")
		passes(2 * time.Second)
		w.wantState("after its probation", second, "live")

		how := w.bySelector(1, 3)
		how.time = 5 * time.Minute
		third := w.try(worse(modeGood, 2), how)
		passes(5*time.Minute - time.Second)
		w.wantState("before the end of its time", third, "canary")
		for i, want := range []uint64{second, third, second, third} {
			if got := w.lastBy(i); got != want {
				w.t.Errorf("with a canary o%d was last run by generation %d, want %d", i, got, want)
			}
		}
		passes(2 * time.Second)
		w.wantState("promoted", third, "probation")
		all(third)
		passes(time.Minute)
		w.wantState("in the end", third, "live")

		bad := w.mustSwap(worse(modeTraps, 3))
		passes(2 * time.Second)
		w.wantState("one that traps", bad, "failed")
		all(bad + 1)
		passes(host15)
		if n := len(w.session.module.Generations()); n != 1 {
			w.t.Errorf("%d generations are kept after their time", n)
		}
		w.wantNoFaults()
	})
}

// host15 is more than host.DefaultKeepFor.
const host15 = 16 * time.Minute

// TestSwap_HammerInVirtualTime: objects that are triggered all the time, while
// modules come on some or all objects, are promoted, aborted, rolled back and
// given settings: no object runs in two generations at once, and what was asked
// for last is done.
func TestSwap_HammerInVirtualTime(t *testing.T) {
	const objects, rounds = 8, 30
	virtually(t, worse(modeGood, 0), objects, func(w *swapping) {
		passes(time.Second)
		ctx, stop := context.WithCancel(w.t.Context())
		var wg sync.WaitGroup
		for i := range objects {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := w.session.Trigger(ctx, w.session.name, []abi.Key{w.key(i)}); err != nil && ctx.Err() == nil {
						w.t.Error(err)
						return
					}
					<-time.After(time.Duration(37+i) * time.Millisecond)
				}
			})
		}
		w.onProbation(time.Second)
		p := w.session.process
		for round := range rounds {
			how := w.bySelector(round%objects, (round+3)%objects)
			switch round % 6 {
			case 0:
				w.mustSwap(worse(modeGood, 100+round))
			case 1:
				w.try(worse(modeGood, 100+round), how)
			case 2:
				w.steerCanary(true)
			case 3:
				w.try(worse(modeTraps, 100+round), how)
			case 4:
				if _, err := p.Configure(w.t.Context(), w.session.name, map[string]*string{"round": new(fmt.Sprint(round))}); err != nil {
					w.t.Error(err)
				}
				w.try(worse(modeGood, 100+round), how)
				w.steerCanary(false)
			case 5:
				if _, err := p.Rollback(w.t.Context(), w.session.name, 0); err != nil {
					w.t.Error(err)
				}
			}
			passes(time.Duration(round%4) * 700 * time.Millisecond)
		}
		stop()
		wg.Wait()
		passes(time.Hour) // retries of runs that trapped
		live := w.session.module.Generation()
		if _, err := p.Trigger(w.t.Context(), w.session.name, nil); err != nil {
			w.t.Error(err)
		}
		passes(time.Minute)
		for i := range objects {
			if got := w.lastBy(i); got != live {
				w.t.Errorf("o%d was last run by generation %d, want %d", i, got, live)
			}
		}
		if n := len(w.session.module.Generations()); n != 1 {
			w.t.Errorf("%d generations are left", n)
		}
		w.wantNoFaults()
	})
}
