// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	gocmp "cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// difference is a known difference of the fake. Any other difference fails the test.
type difference struct {
	why   string
	holds func(r request, real, fake answer) bool
}

// differences are all known ones. The generator does not produce: actions of the cluster's
// controllers (propagation policies other than Background), deletions of collections,
// subresources other than status, and null metadata in an apply, which the storage
// preserves until the next write.
var differences = []difference{
	{"the API server takes a deletionTimestamp over from an apply that creates, which a client never wants", func(r request, real, _ answer) bool {
		return strings.Contains(r.contentType, "apply") && strings.Contains(r.body, "deletionTimestamp") && real["code"] == http.StatusCreated
	}},
}

// TestServer_DiffersInNothing sends random requests to this server and to a real one, and
// compares the answers and the events of watches. WASMCTL_DIFF_REQUESTS is their number,
// and WASMCTL_DIFF_SEED the first seed.
func TestServer_DiffersInNothing(t *testing.T) {
	real, kinds := realServer(t)
	const perSeed = 200
	requests, seed := number(t, "WASMCTL_DIFF_REQUESTS", 2000), number(t, "WASMCTL_DIFF_SEED", 1)
	for ; requests > 0; requests, seed = requests-perSeed, seed+1 {
		script := generate(uint64(seed), min(requests, perSeed))
		at, why := real.compare(t, kinds, script)
		if why == "" {
			continue
		}
		t.Errorf("seed %d, request %d: %s", seed, at+1, why)
		script = real.shrink(t, kinds, script[:min(at+1, len(script))], at < len(script))
		_, why = real.compare(t, kinds, script)
		t.Errorf("seed %d, smallest trace:\n%s\n%s", seed, trace(script), why)
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func trace(script []request) string {
	var b strings.Builder
	for _, r := range script {
		fmt.Fprintf(&b, "%s %s %s %s\n", r.method, r.path, r.contentType, r.body)
	}
	return b.String()
}

// cluster is a real API server.
type cluster struct {
	devcluster interface {
		URL() string
		RESTConfig() *rest.Config
	}
	transport http.RoundTripper
	namespace func(t *testing.T) string
}

// realServer returns a real API server with the kinds of testdata and of wasmctl.
func realServer(t *testing.T) (*cluster, []Kind) {
	t.Helper()
	c := devclustertest.Shared(t)
	var kinds []Kind
	for _, file := range []string{"testdata/crd.yaml", "../../api/v1alpha1/crds.yaml"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		devclustertest.Apply(t, c, content)
		kinds = append(kinds, kindsOf(t, content)...)
	}
	transport, err := rest.TransportFor(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{c, transport, func(t *testing.T) string { return devclustertest.Namespace(t, c) }}, kinds
}

// compare plays a script in a new namespace of both servers. It returns the index of the
// first request whose answers differ, or the length of the script for a watch, and the
// difference.
func (c *cluster) compare(t *testing.T, kinds []Kind, script []request) (at int, why string) {
	t.Helper()
	ns := c.namespace(t)
	theirs := &session{t: t, transport: c.transport, base: c.devcluster.URL(), ns: ns}
	rootCA := theirs.rootCA()
	theirs = newSession(t, c.transport, c.devcluster.URL(), ns)
	memory := New(Config{Kinds: kinds})
	if err := memory.Put(rootCA); err != nil {
		t.Fatal(err)
	}
	ours := newSession(t, memory, "http://in-memory", ns)
	for i, r := range script {
		want, got := theirs.play(r), ours.play(r)
		if slices.ContainsFunc(differences, func(d difference) bool { return d.holds(r, want, got) }) {
			return len(script), "" // the states differ from here on
		}
		if d := cmp.Diff(want, got); d != "" {
			return i, fmt.Sprintf("%s %s %s %s (-real +in memory)\nreal: %s\nin memory: %s\n%s", r.method, r.path, r.contentType, r.body, theirs.message, ours.message, d)
		}
	}
	for i := range theirs.watches {
		if d := cmp.Diff(theirs.events(i), ours.events(i)); d != "" {
			return len(script), fmt.Sprintf("watch %s (-real +in memory)\n%s", watched[i].path, d)
		}
	}
	return len(script), inOrder(theirs.versions, ours.versions)
}

// inOrder reports whether the versions of both servers have the same order.
func inOrder(theirs, ours []version) string {
	if len(theirs) != len(ours) {
		return fmt.Sprintf("%d versions, and %d in memory", len(theirs), len(ours))
	}
	order := make([]int, len(theirs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(theirs[a].number - theirs[b].number) })
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if (theirs[a].number == theirs[b].number) != (ours[a].number == ours[b].number) || ours[a].number > ours[b].number {
			return fmt.Sprintf("versions %v and %v are %v and %v in memory", theirs[a], theirs[b], ours[a], ours[b])
		}
	}
	return ""
}

// shrink removes requests as long as a difference remains in the last answer or in the
// watches.
func (c *cluster) shrink(t *testing.T, kinds []Kind, script []request, answers bool) []request {
	t.Helper()
	fails := func(script []request) bool {
		at, why := c.compare(t, kinds, script)
		return why != "" && (at == len(script)-1) == answers
	}
	for size := len(script) / 2; size > 0; size /= 2 {
		for from := 0; from+size < len(script); {
			if shorter := slices.Delete(slices.Clone(script), from, from+size); fails(shorter) {
				script = shorter
			} else {
				from += size
			}
		}
	}
	return script
}

// answer has the parts of an answer that are compared.
type answer map[string]any

// version is a resourceVersion, and the object that has it.
type version struct {
	number int64
	of     string
}

// session is one API server and the test's state of its objects.
type session struct {
	t         *testing.T
	transport http.RoundTripper
	base, ns  string
	uids      map[string]string   // replaced by numbers
	names     map[string]string   // generated by the server
	last      map[string][]string // uid, version and previous version of an object, by path
	versions  []version           // of the answers, in order
	watches   []*json.Decoder
	next      string // the token of the next page
	message   string // of the last answer
}

func newSession(t *testing.T, transport http.RoundTripper, base, ns string) *session {
	t.Helper()
	s := &session{
		t: t, transport: transport, base: base, ns: ns, uids: map[string]string{}, names: map[string]string{}, last: map[string][]string{},
	}
	for _, r := range watched {
		list := s.send(request{method: http.MethodGet, path: strings.SplitN(r.path, "?", 2)[0]})
		var head struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.NewDecoder(list.Body).Decode(&head); err != nil {
			t.Fatal(err)
		}
		_ = list.Body.Close()
		res := s.send(request{method: http.MethodGet, path: r.path + "&resourceVersion=" + head.Metadata.ResourceVersion})
		t.Cleanup(func() { _ = res.Body.Close() })
		s.watches = append(s.watches, json.NewDecoder(res.Body))
	}
	return s
}

// rootCA returns the ConfigMap that the real server creates in each namespace.
func (s *session) rootCA() map[string]any {
	s.t.Helper()
	var object map[string]any
	for object["kind"] != "ConfigMap" {
		object = nil
		res := s.send(request{method: http.MethodGet, path: configMapsPath + "/kube-root-ca.crt"})
		if err := json.NewDecoder(res.Body).Decode(&object); err != nil {
			s.t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	meta, _ := object["metadata"].(map[string]any)
	delete(meta, "uid")
	delete(meta, "resourceVersion")
	return object
}

var placeholder = regexp.MustCompile(`\$\{(\w+):([^}]*)\}`)

// fill inserts the namespace, uids and versions.
func (s *session) fill(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "$NS", s.ns), "$NEXT", s.next)
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		m := placeholder.FindStringSubmatch(p)
		known := s.last[m[2]]
		if known == nil {
			return "1"
		}
		return known[slices.Index([]string{"uid", "rv", "old"}, m[1])]
	})
}

func (s *session) send(r request) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), r.method, s.base+s.fill(r.path), strings.NewReader(s.fill(r.body)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", r.contentType)
	res, err := s.transport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// play returns the comparable parts of the answer to a request.
func (s *session) play(r request) answer {
	s.t.Helper()
	res := s.send(r)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	out := answer{"code": res.StatusCode}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		out["text"] = strings.TrimSpace(string(raw))
		return out
	}
	s.message = fmt.Sprint(body["message"])
	if body["kind"] == "Status" {
		out["reason"], out["status"] = body["reason"], body["status"]
		return out
	}
	if items, ok := body["items"].([]any); ok {
		meta, _ := body["metadata"].(map[string]any)
		s.next = ""
		if next, ok := meta["continue"].(string); ok {
			s.next = next
		}
		out["more"], out["remaining"], out["kind"], out["apiVersion"] = s.next != "", meta["remainingItemCount"], body["kind"], body["apiVersion"]
		if len(s.names) > 1 && strings.Contains(r.path, "limit=") {
			return out // generated names may be on any page
		}
		slices.SortStableFunc(items, func(a, b any) int { // generated names have a random order
			return strings.Compare(gocmp.Or(s.names[nameOf(a)], nameOf(a)), gocmp.Or(s.names[nameOf(b)], nameOf(b)))
		})
		for _, item := range items {
			s.normalize(item.(map[string]any))
		}
		out["items"] = items
		return out
	}
	meta, _ := body["metadata"].(map[string]any)
	key, _, _ := strings.Cut(r.path, "?")
	if r.method == http.MethodPost {
		key += "/" + fmt.Sprint(meta["name"])
	}
	key = strings.TrimSuffix(key, "/status")
	uid, version := fmt.Sprint(meta["uid"]), fmt.Sprint(meta["resourceVersion"])
	if !strings.Contains(r.path, "dryRun") {
		old := version
		if before := s.last[key]; before != nil {
			if old = before[1]; old == version {
				old = before[2]
			}
		}
		s.last[key] = []string{uid, version, old}
	}
	out["object"] = s.normalize(body)
	return out
}

func nameOf(object any) string {
	meta, _ := object.(map[string]any)["metadata"].(map[string]any)
	return fmt.Sprint(meta["name"])
}

// normalize makes objects of both servers comparable: generated uids and names become
// numbers, versions are recorded, and times are reduced to their presence.
func (s *session) normalize(o map[string]any) map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	if uid, ok := meta["uid"].(string); ok {
		if s.uids[uid] == "" {
			s.uids[uid] = fmt.Sprint("uid ", len(s.uids))
		}
		meta["uid"] = s.uids[uid]
	}
	if name, ok := meta["name"].(string); ok && meta["generateName"] != nil && strings.HasPrefix(name, "gen-") {
		if s.names[name] == "" {
			s.names[name] = fmt.Sprint("gen-", len(s.names))
		}
		meta["name"] = s.names[name]
	}
	if text, ok := meta["resourceVersion"].(string); ok {
		number, err := strconv.ParseInt(text, 10, 64)
		if err == nil { // a dry run may return any text
			s.versions = append(s.versions, version{number, fmt.Sprint(o["kind"], " ", meta["name"])})
			meta["resourceVersion"] = "set"
		}
	}
	for _, key := range []string{"creationTimestamp", "deletionTimestamp"} {
		if meta[key] != nil {
			meta[key] = "set"
		}
	}
	delete(meta, "managedFields")
	return o
}

// events returns the events of a watch up to that of a last object, which it creates.
func (s *session) events(i int) (events []string) {
	s.t.Helper()
	_ = s.send(watched[i]).Body.Close()
	for {
		var ev struct {
			Type   string
			Object map[string]any
		}
		if err := s.watches[i].Decode(&ev); err != nil {
			s.t.Fatal(err)
		}
		name := nameOf(ev.Object)
		events = append(events, ev.Type+" "+string(encode(s.normalize(ev.Object))))
		if name == "last" {
			return events
		}
	}
}
