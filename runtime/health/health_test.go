// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/health"
)

// ask returns the code and the body of a response.
func ask(t *testing.T, c *health.Checks, path string) string {
	t.Helper()
	mux := http.NewServeMux()
	c.Handle(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return fmt.Sprintf("%d %s", w.Code, w.Body)
}

func wants(t *testing.T, c *health.Checks, answers map[string]string) {
	t.Helper()
	got := map[string]string{}
	for path := range answers {
		got[path] = ask(t, c, path)
	}
	if diff := cmp.Diff(answers, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestChecks_AnswerAsKubeAPIServerDoes compares with the texts of kube-apiserver.
func TestChecks_AnswerAsKubeAPIServerDoes(t *testing.T) {
	c := health.New("readyz")
	wants(t, c, map[string]string{
		"/readyz": "200 ok", "/readyz?verbose": "200 [+]ping ok\nreadyz check passed\n", "/readyz/ping": "200 ok",
	})
	remove := c.Add(health.Check{Name: "leader", Do: func() error { return errors.New("the lease was lost") }})
	c.Add(health.Check{Name: "disk", Do: func() error { return nil }})
	wants(t, c, map[string]string{
		"/readyz":                        "500 [+]ping ok\n[-]leader failed: reason withheld\n[+]disk ok\nreadyz check failed\n",
		"/readyz/leader":                 "500 internal server error: the lease was lost\n",
		"/readyz/disk":                   "200 ok",
		"/readyz/nobody":                 "404 readyz has no check of this name; ?verbose lists them\n",
		"/readyz?exclude=leader":         "200 ok",
		"/readyz?verbose&exclude=leader": "200 [+]ping ok\n[+]leader excluded: ok\n[+]disk ok\nreadyz check passed\n",
		"/readyz?exclude=disk":           "500 [+]ping ok\n[-]leader failed: reason withheld\n[+]disk excluded: ok\nreadyz check failed\n",
		"/readyz?verbose&exclude=leader&exclude=b&exclude=a": "200 [+]ping ok\n[+]leader excluded: ok\n[+]disk ok\n" +
			"warn: some health checks cannot be excluded: no matches for \"a\", \"b\"\nreadyz check passed\n",
	})
	remove()
	remove()
	wants(t, c, map[string]string{"/readyz?verbose": "200 [+]ping ok\n[+]disk ok\nreadyz check passed\n"})
}

// TestWatches_FailsByWatchesThatStandStill checks rule 14: liveness is the progress of watches.
func TestWatches_FailsByWatchesThatStandStill(t *testing.T) {
	list := []health.Watch{{Name: "pods", Progress: time.Unix(0, 0)}}
	check := health.Watches(func() []health.Watch { return list })
	if err := check.Do(); err != nil {
		t.Error(err)
	}
	list = append(list, health.Watch{Name: "swaps", Stalled: true}, health.Watch{Name: "nodes", Stalled: true, Progress: time.Unix(0, 0)})
	want := "stalled: the watch: swaps no response so far; nodes last response at 1970-01-01T00:00:00Z"
	if err := check.Do(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSynced_NamesWhatIsWaitedFor(t *testing.T) {
	var list []string
	check := health.Synced("web", func() []string { return list })
	if err := check.Do(); err != nil || check.Name != "synced-web" {
		t.Error(check.Name, err)
	}
	list = []string{"a", "b"}
	if err := check.Do(); err == nil || err.Error() != "not synced: a; b" {
		t.Error(err)
	}
}

// TestChecks_Hammer adds, removes and asks at once.
func TestChecks_Hammer(t *testing.T) {
	c := health.New("livez")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				remove := c.Add(health.Check{Name: fmt.Sprint(i), Do: func() error { return nil }})
				if got := ask(t, c, "/livez"); got != "200 ok" {
					t.Error(got)
				}
				remove()
			}
		})
	}
	wg.Wait()
	wants(t, c, map[string]string{"/livez?verbose": "200 [+]ping ok\nlivez check passed\n"})
}
