// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// failing is an API server with an aggregated API that does not answer.
type failing struct{ asked int }

// Discover implements Source.
func (f *failing) Discover(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	f.asked++
	return nil, nil, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "broken.dev", Version: "v1"}: errors.New("down")}}
}

// restarting is an API server that answers only while up.
type restarting struct {
	up    bool
	asked int
}

// Discover implements Source.
func (r *restarting) Discover(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if r.asked++; r.up {
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("%w: read 127.0.0.1:%d: connection reset", ErrUnavailable, 40_000+r.asked)
}

// TestWait_AnOutageIsNoMissingKind: while the API server does not answer, all that wait for a kind learn only that, and
// only once.
func TestWait_AnOutageIsNoMissingKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		source := &restarting{up: true}
		r := NewResolver(source, slog.New(slog.DiscardHandler))
		var all [5][]string
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				<-time.After(time.Duration(i) * 300 * time.Millisecond)
				_, _ = r.Wait(ctx, fmt.Sprintf("things%d.example.com", i), func(err error) {
					all[i] = append(all[i], map[bool]string{true: "outage", false: "unknown"}[errors.Is(err, ErrUnavailable)])
				})
			})
		}
		for _, up := range []bool{true, false, true} {
			<-time.After(time.Minute)
			turn := <-r.turn // no query is in progress
			source.up = up
			r.turn <- turn
		}
		<-time.After(time.Minute)
		stop()
		wg.Wait()
		for i := range all {
			if got := strings.Join(all[i], ", "); got != "unknown, outage, unknown" {
				t.Errorf("%d: %s", i, got)
			}
		}
	})
}

// TestResolver_AsksSeldomAndWarnsOnce: unknown kinds make it ask, at most once in
// minRefresh.
func TestResolver_AsksSeldomAndWarnsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		source := &failing{}
		r := NewResolver(source, slog.New(slog.NewTextHandler(&log, nil)))
		for range 30 {
			if _, err := r.Resolve(t.Context(), "things"); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
			<-time.After(minRefresh / 10)
		}
		if warnings := strings.Count(log.String(), "an aggregated API does not answer"); source.asked != 3 || warnings != 1 {
			t.Errorf("asked %d times, %d warnings:\n%s", source.asked, warnings, log.String())
		}
	})
}
