// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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
