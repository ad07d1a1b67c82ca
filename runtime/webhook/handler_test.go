// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmctl/wasmctl/abi"
)

// TestServer_Refuses: a request that is not a review for a webhook gets an HTTP error, which is a failed call for the API server.
func TestServer_Refuses(t *testing.T) {
	b := jobs()
	b.routes.Webhooks[0].Rules = []abi.WebhookRule{allRules[0]}
	b.routes.Webhooks[0].Rules[0].Scope = "Namespaced"
	s := serverOf(b)
	deep := func(n int) string {
		return `{"object":{"apiVersion":"example.com/v1","kind":"Job","deep":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	for name, c := range map[string]struct {
		path, body string
		code       int
		part       string
	}{
		"unknown path":              {"/other", reviewOf(t), 404, "no module serves the webhook /other"},
		"a longer path":             {"/validate/x", reviewOf(t), 404, "no module"},
		"a webhook without rules":   {"/without-rules", reviewOf(t), 404, "no module"},
		"nothing":                   {"/validate", "", 400, "not an object in JSON"},
		"null":                      {"/validate", "null", 400, `want AdmissionReview`},
		"no object":                 {"/validate", "[]", 400, "not an object in JSON"},
		"text after it":             {"/validate", reviewOf(t) + "x", 400, "not an object in JSON"},
		"another kind":              {"/validate", strings.Replace(reviewOf(t), "AdmissionReview", "Pod", 1), 400, "is \"admission.k8s.io/v1\" \"Pod\", want AdmissionReview"},
		"another version":           {"/validate", strings.Replace(reviewOf(t), "k8s.io/v1", "k8s.io/v3", 1), 400, "want AdmissionReview"},
		"no request":                {"/validate", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "has no request"},
		"a request of another type": {"/validate", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}`, 400, "request: has an unexpected type"},
		"a key twice":               {"/validate", strings.Replace(reviewOf(t), `"request":{`, `"request":{"uid":"u2",`, 1), 400, "duplicate field"},
		"no uid":                    {"/validate", reviewOf(t, `{"uid":""}`), 400, "uid: is required"},
		"a uid of another type":     {"/validate", reviewOf(t, `{"uid":7}`), 400, "request.uid: has an unexpected type"},
		"an unknown operation":      {"/validate", reviewOf(t, `{"operation":"PATCH"}`), 400, "operation"},
		"no kind":                   {"/validate", reviewOf(t, `{"kind":null}`), 400, "are required"},
		"a kind of another type":    {"/validate", reviewOf(t, `{"kind":"Job"}`), 400, "request.kind: has an unexpected type"},
		"a resource that lies":      {"/validate", reviewOf(t, `{"resource":{"resource":["jobs"]}}`), 400, "request.resource.resource: has an unexpected type"},
		"no object to update":       {"/validate", reviewOf(t, `{"object":null}`), 400, "object: is required for UPDATE"},
		"no object to create":       {"/validate", reviewOf(t, `{"operation":"CREATE","object":null}`), 400, "object: is required for CREATE"},
		"no object to delete":       {"/validate", reviewOf(t, `{"operation":"DELETE","oldObject":null}`), 400, "oldObject: is required"},
		"an object that is a list":  {"/validate", reviewOf(t, `{"object":[1]}`), 400, "request.object: has an unexpected type"},
		"an object of another kind": {"/validate", reviewOf(t, `{"oldObject":{"apiVersion":"v1","kind":"Secret"}}`), 400, "must be of the kind"},
		"metadata that is a text":   {"/validate", reviewOf(t, `{"object":{"apiVersion":"example.com/v1","kind":"Job","metadata":"x"}}`), 400, "with metadata"},
		"a flag that is a number":   {"/validate", reviewOf(t, `{"dryRun":1}`), 400, "request.dryRun: is not a bool"},
		"groups that lie":           {"/validate", reviewOf(t, `{"userInfo":{"groups":[1]}}`), 400, "request.userInfo.groups: is not a list of texts"},
		"extra that lies":           {"/validate", reviewOf(t, `{"userInfo":{"extra":{"a":["b",{}]}}}`), 400, "request.userInfo.extra: is not a list of texts"},
		"options that lie":          {"/validate", reviewOf(t, `{"options":"x"}`), 400, "request.options"},
		"too deep":                  {"/validate", reviewOf(t, deep(140)), 400, "nests deeper"},
		"absurdly deep":             {"/validate", reviewOf(t, deep(9000)), 400, "nests deeper"},
		"a request of no rule":      {"/validate", reviewOf(t, `{"namespace":""}`), 403, "does not select"},
		"too large":                 {"/validate", strings.Repeat(" ", 7<<20) + reviewOf(t), 413, "larger than 7340032 bytes"},
		"a conversion":              {"/validate", conversionReview("example.com/v2", job), 400, "want AdmissionReview"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, post(s, c.path, c.body), c.code, c.part) })
	}
	for _, c := range []struct {
		method, contentType string
		code                int
	}{{"GET", "", 405}, {"PUT", "application/json", 405}, {"POST", "", 415}, {"POST", "text/plain", 415}, {"POST", "application/json; charset=utf-8", 200}} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/validate", strings.NewReader(reviewOf(t)))
		r.Header.Set("Content-Type", c.contentType)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.code || c.code == 405 && w.Header().Get("Allow") != "POST" {
			t.Errorf("%s %q: %d %v", c.method, c.contentType, w.Code, w.Header())
		}
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are in use after all requests", used)
	}
}

// TestServer_FailureIsAFailedCall: if the backend fails, times out or panics, the failure policy of the webhook decides.
func TestServer_FailureIsAFailedCall(t *testing.T) {
	b := jobs()
	s := serverOf(b)
	for _, c := range []struct {
		err  error
		code int
		part string
	}{
		{errors.New("guest[validate]: trapped\x1b"), 500, `guest[validate]: trapped\u001b`},
		{fmt.Errorf("guest: %w", context.DeadlineExceeded), 504, "deadline exceeded"},
		{errors.New(strings.Repeat("x", 1<<20)), 500, "xxx"},
		{nil, 500, "BUG: the host panicked: oops"},
	} {
		b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			if c.err == nil {
				panic("oops")
			}
			return abi.AdmissionResult{}, c.err
		}
		w := post(s, "/validate", reviewOf(t))
		refused(t, w, c.code, c.part)
		if w.Body.Len() > 10_000 {
			t.Errorf("%d bytes", w.Body.Len())
		}
		if w.Header().Get("Retry-After") != "" {
			t.Error("the API server would repeat the request")
		}
	}
}

// TestServer_Deadline: the deadline of a request is a little before that of the API server.
func TestServer_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := jobs()
		var left time.Duration
		b.admit = func(ctx context.Context, _ *abi.Webhook, _ *abi.Admission) (abi.AdmissionResult, error) {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			<-ctx.Done()
			return abi.AdmissionResult{}, ctx.Err()
		}
		s := serverOf(b)
		for query, want := range map[string]time.Duration{
			"": 9 * time.Second, "?timeout=1s": 800 * time.Millisecond, "?timeout=30s": 27 * time.Second, "?timeout=5h": 27 * time.Second,
			"?timeout=x": 9 * time.Second, "?timeout=-1s": 9 * time.Second, "?timeout=100ms": 50 * time.Millisecond,
		} {
			start := time.Now()
			refused(t, post(s, "/validate"+query, reviewOf(t)), 504, "deadline")
			if left != want || time.Since(start) != want {
				t.Errorf("%q: %s, answered after %s, want %s", query, left, time.Since(start), want)
			}
		}
	})
}

// TestServer_Sheds: a request that would wait until its deadline is refused at once, and one whose turn does not come, before its deadline.
// Another backend is not affected.
func TestServer_Sheds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := jobs()
		slow.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			<-time.After(4 * time.Second)
			return abi.AdmissionResult{}, nil
		}
		s := New(Config{Limits: Limits{Concurrency: 2, Queue: 3}})
		s.Add("slow", "/a/slow", slow)
		s.Add("fast", "/b/fast", jobs())
		type answer struct {
			*httptest.ResponseRecorder

			after time.Duration
		}
		burst := func(n int) []answer {
			start, answers := time.Now(), make(chan answer, n)
			for range n {
				go func() {
					w := post(s, "/a/slow/validate", reviewOf(t)) // its deadline is in 9 seconds
					answers <- answer{w, time.Since(start)}
				}()
			}
			synctest.Wait()
			if w := post(s, "/b/fast/validate", reviewOf(t)); w.Code != http.StatusOK {
				t.Errorf("the other backend: %d %s", w.Code, w.Body)
			}
			var list []answer
			for range n {
				list = append(list, <-answers)
			}
			return list
		}
		// Two run, three wait, and one more is refused. The fifth has its turn after 8 seconds.
		check := func(answers []answer, want ...string) {
			t.Helper()
			for i, a := range answers {
				if got := fmt.Sprintf("%d %s", a.Code, a.after); got != want[i] {
					t.Errorf("answer %d: %s %s, want %s", i, got, a.Body, want[i])
				}
				if a.Code == http.StatusServiceUnavailable && !strings.Contains(a.Body.String(), "too many requests") {
					t.Errorf("%s", a.Body)
				}
			}
		}
		check(burst(6), "503 0s", "200 4s", "200 4s", "200 8s", "200 8s", "200 12s")
		// Now the duration is known: nobody waits in vain.
		for range 20 {
			burst(2)
		}
		check(burst(6), "503 0s", "503 0s", "200 4s", "200 4s", "200 8s", "200 8s")
	})
}

// TestServer_QueueEndsBeforeTheDeadline: without an estimate, a request waits until its deadline and no longer.
func TestServer_QueueEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := jobs()
		b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			<-time.After(time.Hour)
			return abi.AdmissionResult{}, nil
		}
		s := New(Config{Limits: Limits{Concurrency: 1}})
		s.Add("jobs", "", b)
		go post(s, "/validate", reviewOf(t))
		synctest.Wait()
		start := time.Now()
		refused(t, post(s, "/validate?timeout=2s", reviewOf(t)), 503, "waited for 1.8s")
		if took := time.Since(start); took != 1800*time.Millisecond {
			t.Errorf("after %s", took)
		}
		<-time.After(2 * time.Hour)
	})
}

// TestServer_MemoryIsBounded: requests that are too large together are refused, and those of another backend are not.
func TestServer_MemoryIsBounded(t *testing.T) {
	large := reviewOf(t, `{"object":{"apiVersion":"example.com/v1","kind":"Job","x":"`+strings.Repeat("x", 200<<10)+`"}}`)
	b := jobs()
	entered, proceed := make(chan struct{}), make(chan struct{})
	b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
		entered <- struct{}{}
		<-proceed
		return abi.AdmissionResult{}, nil
	}
	s := New(Config{Limits: Limits{BackendMemory: 700 << 10}})
	s.Add("one", "/a", b)
	s.Add("two", "/b", jobs())
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- post(s, "/a/validate", large) }()
	<-entered
	refused(t, post(s, "/a/validate", large), 503, "memory")
	if w := post(s, "/b/validate", large); w.Code != http.StatusOK {
		t.Errorf("another backend: %d %s", w.Code, w.Body)
	}
	close(proceed)
	if w := <-first; w.Code != http.StatusOK {
		t.Errorf("the first request: %d %s", w.Code, w.Body)
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are in use", used)
	}
}

// TestServer_AnnouncedBodiesTakeNoMemory: requests whose large bodies never arrive do not crowd out others.
func TestServer_AnnouncedBodiesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(jobs())
		var stuck sync.WaitGroup
		defer stuck.Wait()
		for range 1000 {
			body, client := io.Pipe()
			defer func() { _ = client.Close() }() // nothing was written
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate", body)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = 7 << 20
			stuck.Go(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
		}
		synctest.Wait()
		admitted(t, s, "/validate", reviewOf(t))
	})
}

// TestServer_ReadsSlowly: a body that ends early is refused, however it arrives.
func TestServer_BodyThatFails(t *testing.T) {
	s := serverOf(jobs())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate", io.MultiReader(strings.NewReader(`{"api`), failing{}))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	refused(t, w, 400, "cannot be read")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestServer_Metrics: requests are counted by path and status, and the series of a webhook end with it.
func TestServer_Metrics(t *testing.T) {
	m := NewMetrics(nil)
	s := New(Config{Metrics: m})
	b := jobs()
	remove := s.Add("jobs", "/ns/jobs", b)
	s.Add("others", "/ns/others", jobs())
	post(s, "/ns/jobs/validate", reviewOf(t))
	post(s, "/ns/jobs/validate", "")
	post(s, "/ns/jobs/convert", conversionReview("example.com/v2", job))
	post(s, "/ns/others/validate", reviewOf(t))
	post(s, "/ns/unknown", reviewOf(t))
	const name = "controller_runtime_webhook_requests_total"
	if got, want := series(t, m, name), []string{"200 /ns/jobs/convert", "200 /ns/jobs/validate", "400 /ns/jobs/validate", "200 /ns/others/validate"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := series(t, m, "wasmctl_webhook_conversion_object_seconds"); len(got) != 1 {
		t.Errorf("conversions: %q", got)
	}
	b.routes = &Routes{Webhooks: []abi.Webhook{{Type: abi.WebhookValidate, Path: "/new", Rules: allRules}}}
	post(s, "/ns/jobs/new", reviewOf(t))
	if got, want := series(t, m, name), []string{"200 /ns/jobs/convert", "200 /ns/jobs/new", "200 /ns/others/validate"}; !slices.Equal(got, want) {
		t.Errorf("after a swap: %q, want %q", got, want)
	}
	remove()
	if got, want := series(t, m, name), []string{"200 /ns/others/validate"}; !slices.Equal(got, want) {
		t.Errorf("after the end of a backend: %q, want %q", got, want)
	}
}

// series returns the labels of the series of a metric, sorted by path.
func series(t *testing.T, m *Metrics, name string) (labels []string) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, of := range f.GetMetric() {
			var values []string
			for _, l := range of.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name {
				labels = append(labels, strings.Join(values, " "))
			}
		}
	}
	slices.SortStableFunc(labels, func(a, b string) int { return strings.Compare(a[4:], b[4:]) })
	return labels
}

// TestServer_Backends: the first of several backends that declare the same path or kind serves it, and the others have an error.
func TestServer_Backends(t *testing.T) {
	s := New(Config{})
	one, two := jobs(), jobs()
	two.routes = &Routes{
		Webhooks:    append([]abi.Webhook{{Type: abi.WebhookValidate, Path: "/own", Rules: allRules}}, one.routes.Webhooks[:1]...),
		Conversions: append([]abi.Conversions{{Group: "example.com", Kind: "Task"}}, one.routes.Conversions...),
	}
	var judged []string
	for name, b := range map[string]*backendOf{"one": one, "two": two} {
		b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			judged = append(judged, name)
			return abi.AdmissionResult{}, nil
		}
		convert := b.convert
		b.convert = func(ctx context.Context, c *abi.Conversion) ([][]byte, error) {
			judged = append(judged, name)
			return convert(ctx, c)
		}
	}
	removeOne := s.Add("one", "", one)
	s.Add("two", "", two)
	s.Add("three", "/a/b", &backendOf{})
	task := strings.ReplaceAll(job, "Job", "Task")
	requests := func() string {
		judged = nil
		for _, r := range [][2]string{{"/validate", reviewOf(t)}, {"/own", reviewOf(t)}, {"/convert", conversionReview("example.com/v2", job)}, {"/convert", conversionReview("example.com/v2", task)}} {
			post(s, r[0], r[1])
		}
		return strings.Join(judged, " ")
	}
	if got := requests(); got != "one two one two" {
		t.Errorf("judged by %s", got)
	}
	entries := s.Backends()
	if len(entries) != 3 || entries[0].Controller != "one" || entries[1].Controller != "two" || entries[2].Prefix != "/a/b" ||
		len(entries[0].Conflicts) != 0 || fmt.Sprint(entries[1].Conflicts) != "[webhook /validate is not served: controller one declares it too, and was there first "+
		"the conversion of Job.example.com is not served: controller one declares it too, and was there first]" {
		t.Errorf("%+v", entries)
	}
	removeOne()
	if got := requests(); got != "two two two two" || len(s.Backends()[0].Conflicts) != 0 {
		t.Errorf("judged by %s: %v", got, s.Backends())
	}
}

// TestServer_ASwapRefusesNothing: a request that the API server sends because the former module selects it is allowed, until the configuration
// has had time to follow. Without a module, nothing is allowed.
func TestServer_ASwapRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := jobs()
		b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			return abi.AdmissionResult{Denied: &abi.Denial{Message: "no"}}, nil
		}
		s := serverOf(b)
		check := func(path, change string, want string) {
			t.Helper()
			w := post(s, path, reviewOf(t, change))
			if got := fmt.Sprintf("%d %t", w.Code, strings.Contains(w.Body.String(), `"allowed":true`)); got != want {
				t.Errorf("%s %s: %s %s, want %s", path, change, got, w.Body, want)
			}
		}
		check("/validate", `{}`, "200 false")
		former := b.routes
		b.routes = nil
		check("/validate", `{}`, "404 false")
		narrow := former.Webhooks[0]
		narrow.Rules = slices.Clone(allRules)
		for i := range narrow.Rules {
			narrow.Rules[i].Scope = "Cluster"
		}
		b.routes = &Routes{Webhooks: []abi.Webhook{narrow}}
		check("/validate", `{}`, "200 true")
		check("/validate", `{"namespace":""}`, "200 false")
		check("/default", `{}`, "200 true")
		check("/without-rules", `{}`, "404 false")
		<-time.After(grace + time.Second)
		check("/validate", `{}`, "403 false")
		check("/validate", `{"namespace":""}`, "200 false")
		check("/default", `{}`, "404 false")
	})
}
