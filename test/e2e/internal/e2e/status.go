// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// StatusOf returns the status of the only controller of a process.
func StatusOf(t *testing.T, socket string) admin.Controller {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil || len(st.Controllers) != 1 {
		t.Fatalf("%d controllers: %v", len(st.Controllers), err)
	}
	return st.Controllers[0]
}

// ControllersOf returns the status of the controllers of a process, by name.
func ControllersOf(t *testing.T, socket string) map[string]admin.Controller {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]admin.Controller{}
	for _, c := range st.Controllers {
		byName[c.Name] = c
	}
	return byName
}

// Served returns the URL at which a process serves a path, from its log: the port was
// chosen by the system.
func Served(t *testing.T, c *Process, path string) string {
	t.Helper()
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(c.WantLine(`"msg":"serving"`, path)), &line); err != nil {
		t.Fatal(err)
	}
	return "http://" + line.Address
}

// Fetch returns the status and the body of the answer to a GET.
func Fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return AnswerOf(t, req)
}

// AnswerOf returns the status and the body of the answer to a request.
func AnswerOf(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	client := http.Client{Timeout: WaitLimit}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Exposition is the content of a scrape of metrics.
type Exposition struct {
	Types  map[string]string   // of each metric, by name
	Labels map[string][]string // names, by metric
	Bounds map[string][]string // of the buckets, by histogram
	Sums   map[string]float64  // the sum of all values of a metric, by name; for a histogram, of its counts
	Series map[string]float64
}

// readExposition reads Prometheus's text format.
func readExposition(t *testing.T, text string) Exposition {
	t.Helper()
	e := Exposition{map[string]string{}, map[string][]string{}, map[string][]string{}, map[string]float64{}, map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			e.Types[name] = kind
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.add(line[:at], value)
	}
	return e
}

func (e *Exposition) add(series string, value float64) {
	e.Series[series] = value
	name, rest, _ := strings.Cut(series, "{")
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && e.Types[base] == "histogram" {
			if suffix == "_count" {
				e.Sums[base] += value
			}
			name = base
		}
	}
	if e.Types[name] != "histogram" {
		e.Sums[name] += value
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), `",`) {
		label, v, ok := strings.Cut(part, `="`)
		switch v = strings.TrimSuffix(v, `"`); {
		case !ok:
		case label == "le" && e.Types[name] == "histogram":
			if !slices.Contains(e.Bounds[name], v) && v != "+Inf" {
				e.Bounds[name] = append(e.Bounds[name], v)
			}
		case !slices.Contains(e.Labels[name], label):
			e.Labels[name] = append(e.Labels[name], label)
			slices.Sort(e.Labels[name])
		}
	}
}

// Scraped returns all present metrics of a process.
func Scraped(t *testing.T, url string) Exposition {
	t.Helper()
	code, text := Fetch(t, url+"/metrics?detail=full")
	if code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return readExposition(t, text)
}

// AwaitQuiet waits until nothing has been reconciled for a while: the next trigger is
// not merged with another one.
func AwaitQuiet(t *testing.T, socket string) {
	t.Helper()
	same, last := 0, uint64(0)
	enginetest.Until(t, "nothing is left to do", func() bool {
		st := StatusOf(t, socket)
		if same++; st.Ready+st.Running > 0 || st.Runs != last {
			same = 0
		}
		last = st.Runs
		return same >= 20
	})
}
