// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/host/share"
)

// shown is a line of the log of a process.
type shown struct {
	Msg     string
	Dropped uint64 `json:"tenant_dropped"`
}

// tenantLog returns the logger of a process, and a function that returns its lines since the last call.
func tenantLog(t *testing.T) (process *slog.Logger, lines func() []shown) {
	t.Helper()
	var out bytes.Buffer
	process, err := New(&out, "json", 0)
	if err != nil {
		t.Fatal(err)
	}
	return process, func() (all []shown) {
		for line := range strings.Lines(out.String()) {
			var l shown
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		out.Reset()
		return all
	}
}

func count(lines []shown, msg string) (n int, dropped uint64) {
	for _, l := range lines {
		if l.Msg == msg {
			n, dropped = n+1, dropped+l.Dropped
		}
	}
	return n, dropped
}

// TestAccounts_AFloodHidesNothingElse: a tenant whose controllers write one message as fast as they can is bounded in bytes;
// other messages of the tenant, and the lines of other tenants and of the operator's controllers, are written.
func TestAccounts_AFloodHidesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process, lines := tenantLog(t)
		controller := func(tenant string) *slog.Logger {
			l := ForController(process, nil)
			FeedOf(l).Charge(tenant)
			return l
		}
		other, operator, watch := controller("other"), controller(share.OwnTenant("web")), ForTenant(process, "noisy").With("watch", "pods")
		const seconds, controllers = 60, 20
		var noisy []*slog.Logger
		for range controllers {
			noisy = append(noisy, controller("noisy"))
		}
		sent := 0
		for range seconds {
			for _, l := range noisy {
				for range 50 {
					l.Warn("reconcile failed", "object", "shop/web", "error", errors.New(strings.Repeat("x", 200)))
					sent++
				}
			}
			<-time.After(time.Second)
		}
		flooded, written := lines(), UsageOf(process, "noisy")
		n, dropped := count(flooded, "reconcile failed")
		if most := int64(tenantBurst + tenantRate*seconds + 1000*(rareBurst+rareRate*seconds)); written.Bytes > most || written.Bytes < tenantBurst {
			t.Errorf("%d bytes are written, want at most %d", written.Bytes, most)
		}
		if uint64(n)+written.Dropped != uint64(sent) || dropped == 0 || dropped > written.Dropped {
			t.Errorf("%d lines are written and %d dropped, of which %d are reported, of %d", n, written.Dropped, dropped, sent)
		}
		if _, next, _ := FeedOf(noisy[0]).From(0); next != 50*seconds {
			t.Errorf("%d lines were in the feed of a controller, want all of them", next)
		}
		for range 300 { // without a pause, so that the bytes of the tenant stay used up
			noisy[0].Warn("reconcile failed", "error", strings.Repeat("x", 2000))
		}
		lines()
		noisy[1].Error("nothing runs: there is no other module")
		watch.Warn("watch denied")
		for _, l := range []*slog.Logger{other, operator} {
			for range 100 {
				l.Info("reconciled")
			}
		}
		got := lines()
		for msg, want := range map[string]int{"nothing runs: there is no other module": 1, "watch denied": 1, "reconciled": 200} {
			if n, _ := count(got, msg); n != want {
				t.Errorf("%q is written %d times, want %d", msg, n, want)
			}
		}
		<-time.After(time.Minute)
		noisy[2].Warn("reconcile failed")
		if got := lines(); len(got) != 1 || got[0].Dropped == 0 {
			t.Errorf("after the flood: %+v, want one line with the number of dropped ones", got)
		}
	})
}

// TestAccounts_LinesOfModulesHideNoneOfTheHost: a module can choose any number of texts.
func TestAccounts_LinesOfModulesHideNoneOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process, lines := tenantLog(t)
		l := ForController(process, nil)
		FeedOf(l).Charge("noisy")
		for i := range 20_000 {
			l.Info(fmt.Sprint("text ", i), "from", "guest")
		}
		l.Error("cannot close the module")
		got := lines()
		if n, _ := count(got, "cannot close the module"); n != 1 || len(got) < logBurst {
			t.Errorf("the line of the host is written %d times, among %d", n, len(got))
		}
		if u := UsageOf(process, "noisy"); u.Bytes == 0 || u.Dropped != 0 {
			t.Errorf("%+v, want the bytes of the module's lines, none of which is dropped by the account", u)
		}
	})
}

// TestAccounts_AgreeWithAModel: for random lines, the account writes a line if bytes are left, or a line of its message is.
func TestAccounts_AgreeWithAModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s, now := &accounts{all: map[string]*account{}}, time.Unix(0, 0)
	tokens, rare, owed := float64(tenantBurst), map[string]float64{}, map[string]uint64{}
	for i := range 50_000 {
		step := time.Duration(r.IntN(int(30 * time.Millisecond)))
		if r.IntN(5000) == 0 {
			step = time.Minute
		}
		now = now.Add(step)
		msg, n := fmt.Sprint(min(r.IntN(30), r.IntN(30))), 1+r.IntN(2000)
		tokens = min(tenantBurst, tokens+step.Seconds()*tenantRate)
		for m := range rare {
			rare[m] = min(rareBurst, rare[m]+step.Seconds()*rareRate)
		}
		if _, ok := rare[msg]; !ok {
			rare[msg] = rareBurst
		}
		want := true
		switch {
		case tokens > 1e-3:
			tokens -= float64(n)
		case rare[msg] >= 1-1e-9:
			rare[msg]--
		default:
			want = false
			owed[msg]++
		}
		rec := slog.NewRecord(now, slog.LevelWarn, msg, 0)
		pass, dropped := s.take(now, "t", &rec, n, false)
		if pass != want || pass && dropped != owed[msg] {
			t.Fatalf("line %d: %v %d, want %v %d", i, pass, dropped, want, owed[msg])
		}
		if pass {
			owed[msg] = 0
		}
	}
	if s.usage("t").Dropped == 0 {
		t.Error("no line was dropped")
	}
	s.take(now.Add(2*forgetTenant), "another", &slog.Record{}, 1, false)
	if len(s.all) != 1 {
		t.Errorf("%d accounts, want only the new one", len(s.all))
	}
}
