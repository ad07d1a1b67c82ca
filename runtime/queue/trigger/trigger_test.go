// SPDX-License-Identifier: Apache-2.0

package trigger_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func ref(namespace, name string) reflector.ObjectRef {
	return reflector.ObjectRef{Namespace: namespace, Name: name}
}

// run is a running Source, with its triggers.
type run struct {
	mu    sync.Mutex
	got   []trigger.Trigger // guarded by mu
	at    []time.Time       // guarded by mu
	ended chan struct{}
	err   error // read after ended
	stop  context.CancelFunc
}

func start(t *testing.T, s trigger.Source) *run {
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{ended: make(chan struct{}), stop: cancel}
	go func() {
		defer close(r.ended)
		r.err = s.Run(ctx, func(_ context.Context, tr trigger.Trigger) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.got, r.at = append(r.got, tr), append(r.at, time.Now())
		})
	}()
	return r
}

// end stops the Source, and fails the test if it does not end without an error.
func (r *run) end(t *testing.T) {
	t.Helper()
	r.stop()
	<-r.ended
	if r.err != nil {
		t.Error(r.err)
	}
}

func (r *run) triggers() []trigger.Trigger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *run) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

var resync = trigger.Trigger{All: true, Reason: abi.Reason{Type: abi.ReasonResync}, Low: true}

func store(t *testing.T, names ...string) *reflector.Store {
	t.Helper()
	w := reflector.NewWriter()
	for _, name := range names {
		o, err := reflector.Pack(map[string]any{"metadata": map[string]any{"name": name, "namespace": "ns"}}, reflector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.Apply(o, func(reflector.Event) {})
	}
	return w.Store()
}

func TestTrigger_RequestsAllOrNamedObjects(t *testing.T) {
	st := store(t, "a", "b")
	triggered := abi.Reason{Type: abi.ReasonTriggered}
	for what, c := range map[string]struct {
		trigger trigger.Trigger
		want    []queue.Request
	}{
		"nothing": {trigger.Trigger{}, nil},
		"named, also one that is not there": {
			trigger.Trigger{Refs: []reflector.ObjectRef{ref("ns", "b"), ref("ns", "gone")}},
			[]queue.Request{{Ref: ref("ns", "b"), Reason: triggered}, {Ref: ref("ns", "gone"), Reason: triggered}},
		},
		"all": {
			resync,
			[]queue.Request{{Ref: ref("ns", "a"), Reason: resync.Reason, Low: true}, {Ref: ref("ns", "b"), Reason: resync.Reason, Low: true}},
		},
	} {
		got := c.trigger.Requests(nil, st)
		slices.SortFunc(got, func(a, b queue.Request) int { return strings.Compare(a.Ref.Name, b.Ref.Name) })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// Rule 4: a resync has low priority. Its period varies by a tenth.
func TestResync_ComesEveryPeriodMoreOrLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := trigger.NewResync(10 * time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		last := time.Now()
		r := start(t, s)
		sleep(1000 * time.Hour)
		r.end(t)
		different := map[time.Duration]bool{}
		for i, at := range r.times() {
			took := at.Sub(last)
			if took < 9*time.Hour || took > 11*time.Hour {
				t.Errorf("number %d came after %v", i, took)
			}
			different[took] = true
			last = at
			if diff := cmp.Diff(resync, r.got[i]); diff != "" {
				t.Fatal(diff)
			}
		}
		if n := len(r.times()); n < 90 || n > 112 || len(different) < n/2 {
			t.Errorf("%d came, after %d different times", n, len(different))
		}
	})
}

func TestNewResync_RefusesNoPeriod(t *testing.T) {
	for _, period := range []time.Duration{0, -time.Hour, time.Millisecond} {
		if _, err := trigger.NewResync(period); err == nil {
			t.Errorf("%v: no error", period)
		}
	}
}

// Bubbles begin at midnight UTC, 1 January 2000, a Saturday.
func TestCron_ComesAtItsTimes(t *testing.T) {
	zone := time.FixedZone("UTC+3", 3*3600)
	for _, c := range []struct {
		spec string
		zone *time.Location
		want []string
	}{
		{"0 3 * * *", nil, []string{"01-01 03:00", "01-02 03:00", "01-03 03:00"}},
		{"0 3 * * *", zone, []string{"01-02 00:00", "01-03 00:00", "01-04 00:00"}},
		{"*/30 9-10 * * MON", nil, []string{"01-03 09:00", "01-03 09:30", "01-03 10:00", "01-03 10:30"}},
		{"@daily", nil, []string{"01-02 00:00", "01-03 00:00", "01-04 00:00"}},
		{"15 12 2 * *", nil, []string{"01-02 12:15"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := trigger.NewCron(c.spec, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, s)
			sleep(3*24*time.Hour + time.Minute)
			r.end(t)
			var got []string
			for _, at := range r.times() {
				got = append(got, at.UTC().Format("01-02 15:04"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s in %v: %s", c.spec, c.zone, diff)
			}
			if diff := cmp.Diff(resync, r.triggers()[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewCron_RefusesWhatIsNoSchedule(t *testing.T) {
	for _, spec := range []string{
		"", "* * * *", "* * * * * *", "61 * * * *", "*/0 * * * *", "0 0 30 2 *", "TZ=UTC", "TZ=UTC * * * * *", "CRON_TZ=UTC",
		"@every 5m", "@reboot", "@never", "a b c d e",
	} {
		if _, err := trigger.NewCron(spec, nil); err == nil {
			t.Errorf("%q: no error", spec)
		}
	}
}

// FuzzNewCron: no schedule panics, and its next time is always after now.
func FuzzNewCron(f *testing.F) {
	for _, s := range []string{"0 3 * * *", "*/5 1-2,4 ? JAN-DEC mon", "@daily", "TZ=", "@every 1h", "0-59/7 * 31 * 7", "*/9999999999 * * * *"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, spec string) {
		_, _ = trigger.NewCron(spec, nil)
	})
}

func TestChan_EmitsUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan trigger.Trigger)
		r := start(t, trigger.Chan[trigger.Trigger]{Name: "test", C: c})
		want := []trigger.Trigger{{All: true}, {Refs: []reflector.ObjectRef{ref("ns", "a")}}}
		for _, tr := range want {
			c <- tr
		}
		close(c)
		<-r.ended
		if r.err != nil {
			t.Error(r.err)
		}
		if diff := cmp.Diff(want, r.triggers()); diff != "" {
			t.Error(diff)
		}
		never := start(t, trigger.Chan[trigger.Trigger]{})
		synctest.Wait()
		never.end(t)
	})
}

func TestChan_RequestsOneObjectOrAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, ticks := make(chan abi.Key, 1), make(chan time.Time, 1)
		keys <- ref("ns", "a")
		ticks <- time.Now()
		close(keys)
		close(ticks)
		one, all := start(t, trigger.Chan[abi.Key]{C: keys}), start(t, trigger.Chan[time.Time]{C: ticks})
		<-one.ended
		<-all.ended
		got := append(one.triggers(), all.triggers()...)
		if diff := cmp.Diff([]trigger.Trigger{{Refs: []reflector.ObjectRef{ref("ns", "a")}}, {All: true}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Every Source ends with its context, even if nothing ever comes.
func TestSources_EndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cron, err := trigger.NewCron("@yearly", nil)
		if err != nil {
			t.Fatal(err)
		}
		resync, err := trigger.NewResync(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []trigger.Source{cron, resync, trigger.Chan[trigger.Trigger]{C: make(chan trigger.Trigger)}} {
			r := start(t, s)
			synctest.Wait()
			r.end(t)
			if len(r.triggers()) != 0 {
				t.Errorf("%s: emitted %v", s, r.triggers())
			}
		}
	})
}

func TestSources_NameThemselves(t *testing.T) {
	cron, _ := trigger.NewCron("@daily", nil)
	every, _ := trigger.NewResync(time.Hour)
	want := map[string]trigger.Source{
		"cron @daily UTC":     cron,
		"resync every 1h0m0s": every,
		"lines of stdin":      trigger.Lines{Name: "stdin"},
		"channel admin":       trigger.Chan[trigger.Trigger]{Name: "admin"},
	}
	for name, s := range want {
		if got := s.String(); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

// sleep advances virtual time.
func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}
