// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/webhook"
	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// limit is how long a test waits for a condition.
const limit = 2 * time.Minute

// until waits until a condition holds.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("timeout: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// backend has routes, and judges nothing.
type backend struct {
	webhook.Backend

	routes atomic.Pointer[webhook.Routes]
}

func (b *backend) Routes() *webhook.Routes { return b.routes.Load() }

// answer allows every admission, and converts every object by changing its version.
func answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, webhook.ConvertPath) {
		var review struct {
			metav1.TypeMeta
			Request struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		_ = json.Unmarshal(body, &review)
		for _, o := range review.Request.Objects {
			o["apiVersion"] = review.Request.DesiredAPIVersion
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": review.APIVersion, "kind": review.Kind,
			"response": map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"}},
		})
		return
	}
	var review admissionv1.AdmissionReview
	_ = json.Unmarshal(body, &review)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// balancer is one address for several replicas: each connection goes to another one that is ready.
type balancer struct {
	net.Listener

	mu       sync.Mutex
	replicas []*process // guarded by mu
	turn     int        // guarded by mu
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	b := &balancer{Listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.forward(conn)
		}
	}()
	return b
}

// pick returns the next replica that is ready, or nil. It cannot stop before its field active is decremented.
func (b *balancer) pick() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.replicas {
		b.turn++
		if r := b.replicas[b.turn%len(b.replicas)]; r.registrar.Ready() == nil {
			r.active.Add(1)
			return r
		}
	}
	return nil
}

func (b *balancer) forward(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	p := b.pick()
	if p == nil {
		return
	}
	defer p.active.Done()
	to, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, to)
}

// process is a replica: a server, and its registrar.
type process struct {
	registrar *Registrar
	listener  net.Listener
	active    sync.WaitGroup // connections
	cancel    context.CancelFunc
	done      chan error
}

// group is a group of replicas on the control plane.
type group struct {
	*testing.T

	config   *rest.Config
	options  Options
	home     string // namespace of the record
	server   *webhook.Server
	backend  *backend
	balancer *balancer
	client   dynamic.Interface
}

// newGroup creates a CRD with two versions. Its requests are judged.
func newGroup(t *testing.T) *group {
	t.Helper()
	c := devclustertest.Shared(t)
	g := &group{T: t, config: c.RESTConfig(), home: devclustertest.Namespace(t, c), server: webhook.New(webhook.Config{}), backend: &backend{}, balancer: newBalancer(t)}
	g.options = Options{Name: "wasmctl-" + g.home, URL: "https://" + g.balancer.Addr().String()}
	var err error
	if g.client, err = dynamic.NewForConfig(g.config); err != nil {
		t.Fatal(err)
	}
	devclustertest.Apply(t, c, []byte(strings.ReplaceAll(crdText, "GROUP", g.kind().Group)))
	g.backend.routes.Store(&webhook.Routes{
		Webhooks: []abi.Webhook{
			{Type: abi.WebhookValidate, Path: "/validate", Rules: []abi.WebhookRule{rule(g.kind().Group, "apps")}},
			{Type: abi.WebhookDefault, Path: "/default", Rules: []abi.WebhookRule{rule(g.kind().Group, "apps")}, FailurePolicy: "Fail"},
			{Type: abi.WebhookValidate, Path: "/bad", Rules: []abi.WebhookRule{rule(g.kind().Group, "apps")}, Conditions: []abi.MatchCondition{{Name: "bad", Expression: "no CEL"}}},
		},
		Conversions: []abi.Conversions{{Group: g.kind().Group, Kind: "App"}},
		Owned:       []schema.GroupKind{{Group: g.kind().Group, Kind: "App"}},
		Digest:      "sha256:1",
	})
	g.server.Add("app", "", g.backend)
	return g
}

const crdText = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: apps, singular: app, kind: App}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func (g *group) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: g.home + ".registration.test", Version: "v1", Kind: "App"}
}

func (g *group) apps(version string) dynamic.ResourceInterface {
	return g.client.Resource(schema.GroupVersionResource{Group: g.kind().Group, Version: version, Resource: "apps"}).Namespace(g.home)
}

// start starts a replica.
func (g *group) start(name string, config certs.Config) *process {
	g.Helper()
	config.Replica, config.Hosts = name, []string{"127.0.0.1"}
	authority := certs.New(config)
	registrar, err := New(Config{
		Options: g.options, RESTConfig: g.config, Namespace: g.home, Replica: name, Authority: authority, Server: g.server,
		Logger: slog.New(slog.NewTextHandler(g.Output(), nil)).With("replica", name),
	})
	if err != nil {
		g.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(g.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		g.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(answer), TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	server.SetKeepAlivesEnabled(false) // each request has a handshake of its own
	ctx, cancel := context.WithCancel(g.Context())
	p := &process{registrar: registrar, listener: l, cancel: cancel, done: make(chan error, 1)}
	go func() { _ = server.ServeTLS(l, "", "") }()
	g.balancer.mu.Lock()
	g.balancer.replicas = append(g.balancer.replicas, p)
	g.balancer.mu.Unlock()
	go func() {
		err := registrar.Run(ctx)
		g.balancer.mu.Lock()
		g.balancer.replicas = without(g.balancer.replicas, p)
		g.balancer.mu.Unlock()
		p.active.Wait()
		_ = server.Shutdown(context.WithoutCancel(ctx))
		p.done <- err
	}()
	g.Cleanup(cancel)
	return p
}

func without(list []*process, p *process) (left []*process) {
	for _, other := range list {
		if other != p {
			left = append(left, other)
		}
	}
	return left
}

// stop ends a replica, and waits.
func (g *group) stop(p *process) {
	g.Helper()
	p.cancel()
	if err := <-p.done; err != nil {
		g.Error(err)
	}
}

// registered reports how many webhooks are registered, and whether objects are converted.
func (g *group) registered() (hooks int, converted bool) {
	g.Helper()
	for _, kind := range configurations {
		o, err := g.client.Resource(plural(kind)).Get(g.Context(), g.options.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			g.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		hooks += len(list)
	}
	strategy, _, _ := unstructured.NestedString(g.crd().Object, "spec", "conversion", "strategy")
	return hooks, strategy == "Webhook"
}

// object returns an object in the version that is not stored.
func (g *group) object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": g.kind().Group + "/v2", "kind": "App", "metadata": map[string]any{"name": name},
	}}
}

// create tries to create an object, and lists all of them. Both need a conversion.
func (g *group) create(i int) error {
	object := g.object(fmt.Sprint("app-", i))
	if _, err := g.apps("v2").Create(g.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return err
	}
	_, err := g.apps("v2").List(g.Context(), metav1.ListOptions{})
	return err
}

// load creates objects until the returned function is called, which returns the number of requests. Each one must succeed.
func (g *group) load() (stop func() int) {
	ctx, cancel := context.WithCancel(g.Context())
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; n++ {
			if err := g.create(n); err != nil {
				g.Errorf("request %d: %v", n, err)
				return
			}
		}
	}()
	return func() int {
		cancel()
		<-done
		return n
	}
}

// TestRegistrar_RotatesUnderLoad: several rotations, a replica that starts, and one that stops, without a failed request. The certificates
// are replaced early, but are valid for so long that a slow machine does not matter.
func TestRegistrar_RotatesUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: needs a control plane")
	}
	g := newGroup(t)
	fast := certs.Config{Validity: time.Hour, Renew: 8 * time.Second}
	first := g.start("replica-1", fast)
	until(t, "registered", func() bool {
		hooks, converted := g.registered()
		err := first.registrar.Problem()
		return hooks == 2 && converted && err != nil && strings.Contains(err.Error(), "/bad")
	})
	until(t, "judged and converted", func() bool {
		_, err := g.apps("v2").Create(t.Context(), g.object("stored"), metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	stop := g.load()
	serial := func(p *process) string {
		c, err := p.registrar.cfg.Authority.GetCertificate(nil)
		if err != nil {
			return ""
		}
		return c.Leaf.SerialNumber.String()
	}
	rotate := func(processes ...*process) {
		for _, p := range processes {
			was := serial(p)
			until(t, "a new certificate", func() bool { return serial(p) != was })
		}
	}
	second := g.start("replica-2", fast)
	until(t, "the second replica is ready", func() bool { return second.registrar.Ready() == nil })
	rotate(first, second)
	rotate(first, second)
	g.stop(first)
	rotate(second)
	if n := stop(); n < 10 {
		t.Errorf("only %d requests", n)
	}
	if err := g.apps("v2").Delete(t.Context(), "stored", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if hooks, converted := g.registered(); hooks != 2 || !converted {
		t.Errorf("%d webhooks, conversion %v, although a replica is left", hooks, converted)
	}
	g.stop(second)
	if hooks, converted := g.registered(); hooks != 0 || !converted {
		t.Errorf("%d webhooks, conversion %v, although no replica is left", hooks, converted)
	}
	if _, err := g.client.Resource(configMaps).Namespace(g.home).Get(t.Context(), g.options.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the record remains: %v", err)
	}
}

// TestRegistrar_FollowsRoutesWithItsRights: it needs no more rights than these, and a round without a change writes nothing.
func TestRegistrar_FollowsRoutesWithItsRights(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: needs a control plane")
	}
	g := newGroup(t)
	configs := []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
	names := []string{g.options.Name}
	limited := devclustertest.LimitedClusterWide(t, devclustertest.Shared(t),
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: configs, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: configs, ResourceNames: names, Verbs: []string{"get", "update", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{crds.Group}, Resources: []string{crds.Resource}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{crds.Group}, Resources: []string{crds.Resource}, ResourceNames: []string{"apps." + g.kind().Group}, Verbs: []string{"get", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"get", "create", "patch", "delete"}},
	)
	r, err := New(Config{
		Options: g.options, RESTConfig: limited, Namespace: g.home, Replica: "replica-1", Authority: certs.New(certs.Config{}), Server: g.server,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.opened = time.Now()
	routes := *g.backend.Routes()
	for _, step := range []struct {
		digest      string
		routes      []abi.Webhook
		hooks       int
		problem     string
		unchanged   bool
		description string
	}{
		{"sha256:1", routes.Webhooks, 2, "/bad", false, "at first"},
		{"sha256:1", routes.Webhooks, 2, "/bad", true, "again"},
		{"sha256:2", routes.Webhooks[:1], 1, "", false, "a new module has one webhook"},
		{"sha256:3", nil, 0, "", false, "a module without webhooks"},
	} {
		changed := routes
		changed.Digest, changed.Webhooks = step.digest, step.routes
		g.backend.routes.Store(&changed)
		before := g.versions()
		err := r.round(t.Context(), r.sources())
		if (err != nil) != (step.problem != "") || err != nil && !strings.Contains(err.Error(), step.problem) {
			t.Errorf("%s: problem %v", step.description, err)
		}
		if hooks, converted := g.registered(); hooks != step.hooks || !converted {
			t.Errorf("%s: %d webhooks, converted: %v", step.description, hooks, converted)
		}
		if unchanged := before == g.versions(); unchanged != step.unchanged {
			t.Errorf("%s: unchanged: %v", step.description, unchanged)
		}
	}
	if err := r.end(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRegistrar_AFullConfigurationIsStored: the API server and etcd accept one of the maximum size, with everything that they add to it.
func TestRegistrar_AFullConfigurationIsStored(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: needs a control plane")
	}
	g := newGroup(t)
	none := *g.backend.Routes()
	none.Webhooks, none.Conversions = nil, nil
	g.backend.routes.Store(&none)
	for i := range 12 {
		routes := &webhook.Routes{Digest: "sha256:1"}
		for j := range 100 {
			routes.Webhooks = append(routes.Webhooks, abi.Webhook{
				Type: abi.WebhookValidate, Path: fmt.Sprint("/", j), Rules: []abi.WebhookRule{rule(g.kind().Group, "apps")}, FailurePolicy: "Ignore",
			})
		}
		b := &backend{}
		b.routes.Store(routes)
		g.server.Add(fmt.Sprint("app-", i), fmt.Sprint("/app-", i), b)
	}
	r, err := New(Config{
		Options: g.options, RESTConfig: g.config, Namespace: g.home, Replica: "replica-1", Authority: certs.New(certs.Config{}), Server: g.server,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.opened = time.Now()
	for range 2 { // the second one has managedFields
		if err := r.round(t.Context(), r.sources()); err == nil || strings.Count(err.Error(), "\n") != strings.Count(err.Error(), "the configuration is full")-1 {
			t.Errorf("not only what does not fit is reported: %.300v", err)
		}
		if hooks, _ := g.registered(); hooks < 100 || hooks == 12*100 {
			t.Errorf("%d webhooks", hooks)
		}
	}
	if err := r.end(t.Context()); err != nil {
		t.Error(err)
	}
}

// versions returns the resourceVersions of the objects.
func (g *group) versions() (text string) {
	for _, kind := range configurations {
		if o, err := g.client.Resource(plural(kind)).Get(g.Context(), g.options.Name, metav1.GetOptions{}); err == nil {
			text = max(text, o.GetResourceVersion()) + min(text, o.GetResourceVersion())
		}
	}
	return text + g.crd().GetResourceVersion()
}

func (g *group) crd() *unstructured.Unstructured {
	g.Helper()
	crd, err := g.client.Resource(crds).Get(g.Context(), "apps."+g.kind().Group, metav1.GetOptions{})
	if err != nil {
		g.Fatal(err)
	}
	return crd
}
