// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	remoteconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// process is an admin.Service with a log.
type process struct{ admin.Service }

func (process) Status() admin.Status { return admin.Status{Version: "v9", PID: 42} }

func (process) Logs(_ context.Context, _ string, _ admin.LogQuery, emit func([]byte) error) error {
	for i := range 1000 {
		if err := emit(fmt.Appendf(nil, `{"n":%d,"text":%q}`+"\n", i, strings.Repeat("\x1b", 100))); err != nil {
			return err
		}
	}
	return nil
}

// startProcess serves an admin socket, and returns its path.
func startProcess(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pods-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.New(path, process{}, slog.New(slog.DiscardHandler)).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	for limit := time.After(time.Minute); ; {
		if _, err := admin.NewClient(path).Status(t.Context()); err == nil {
			return path
		}
		select {
		case <-limit:
			t.Fatal("the socket does not answer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kubelet executes commands in pods: it calls run with the command and the streams. It speaks SPDY only.
func kubelet(t *testing.T, run func(command []string, in io.Reader, out, stderr io.Writer) (code int)) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{remoteconsts.StreamProtocolV4Name}); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		arrived := make(chan httpstream.Stream, 4)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			arrived <- s
			return nil
		})
		if conn == nil {
			return
		}
		defer func() { _ = conn.Close() }()
		streams := map[string]httpstream.Stream{}
		for range 4 {
			select {
			case s := <-arrived:
				streams[s.Headers().Get(corev1.StreamType)] = s
			case <-conn.CloseChan():
				return
			}
		}
		code := run(r.URL.Query()["command"], streams[corev1.StreamTypeStdin], streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr])
		st := metav1.Status{Status: metav1.StatusSuccess}
		if code != 0 {
			st = metav1.Status{Status: metav1.StatusFailure, Reason: remoteconsts.NonZeroExitCodeReason, Message: "it failed", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remoteconsts.ExitCodeCauseType, Message: fmt.Sprint(code)}}}}
		}
		_ = json.NewEncoder(streams[corev1.StreamTypeError]).Encode(&st)
		for _, name := range []string{corev1.StreamTypeStdout, corev1.StreamTypeStderr, corev1.StreamTypeError} {
			_ = streams[name].Close()
		}
		select { // the client closes the connection when it has read everything
		case <-conn.CloseChan():
		case <-time.After(time.Minute):
		}
	})
}

// piped runs the command of a pod whose process has this socket.
func piped(t *testing.T, socket string) func([]string, io.Reader, io.Writer, io.Writer) int {
	t.Helper()
	return func(command []string, in io.Reader, out, stderr io.Writer) int {
		if !slices.Equal(command, []string{"/wasmctl", Command}) {
			_, _ = fmt.Fprintf(stderr, "cannot run %q", command)
			return 127
		}
		if err := admin.Pipe(context.Background(), socket, in, out); err != nil {
			_, _ = fmt.Fprintln(stderr, "wasmctl:", err)
			return 1
		}
		return 0
	}
}

// podAt returns a pod of an API server.
func podAt(url string) *Pod {
	return &Pod{Namespace: "wasmctl-system", Name: "wasmctl-1", config: &rest.Config{Host: url}, container: "wasmctl", binary: "/wasmctl"}
}

// asks sends requests to the process in a pod.
func asks(t *testing.T, p *Pod) {
	t.Helper()
	c := admin.NewClientOver(p.String(), p.Dial)
	for range 3 {
		if st, err := c.Status(t.Context()); err != nil || st.PID != 42 {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	n := 0
	err := c.Logs(t.Context(), "web", admin.LogQuery{}, func([]byte) error { n++; return nil })
	if err != nil || n != 1000 {
		t.Errorf("%d lines, %v", n, err)
	}
	enough := errors.New("enough")
	if err := c.Logs(t.Context(), "web", admin.LogQuery{}, func([]byte) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if st, err := c.Status(t.Context()); err != nil || st.Version != "v9" {
		t.Errorf("after an aborted answer: %+v, %v", st, err)
	}
}

// TestDial_WorksWithoutWebsockets: the connection falls back to SPDY.
func TestDial_WorksWithoutWebsockets(t *testing.T) {
	executes := kubelet(t, piped(t, startProcess(t)))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
			http.Error(w, "no websockets here", http.StatusBadRequest)
		case r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/wasmctl-system/pods/wasmctl-1/exec" || r.URL.Query().Get("container") != "wasmctl":
			http.NotFound(w, r)
		default:
			executes.ServeHTTP(w, r)
		}
	}))
	defer api.Close()
	asks(t, podAt(api.URL))
}

// TestDial_TellsThatTheUserMayNot: without the right to create pods/exec, the error has the reason and the class of the API server.
func TestDial_TellsThatTheUserMayNot(t *testing.T) {
	refusal := apierrors.NewForbidden(corev1.Resource("pods"), "wasmctl-1", errors.New(`no right to create resource "pods/exec"`))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(memapi.StatusOf(refusal)) // the client may have gone
	}))
	defer api.Close()
	p := podAt(api.URL)
	_, err := admin.NewClientOver(p.String(), p.Dial).Status(t.Context())
	if admin.ClassOf(err) != failure.Denied || !strings.Contains(err.Error(), refusal.Error()) {
		t.Errorf("%q: %v", admin.ClassOf(err), err)
	}
}

// TestDial_ThroughTheAPIServer reaches the process in a pod as kubectl exec does: by a websocket to a real API
// server, which passes the streams on to the kubelet.
func TestDial_ThroughTheAPIServer(t *testing.T) {
	cluster := devclustertest.Shared(t)
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	ns := devclustertest.Namespace(t, cluster)
	node := httptest.NewTLSServer(kubelet(t, piped(t, startProcess(t))))
	defer node.Close()
	address := node.Listener.Addr().(*net.TCPAddr)
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ns}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(address.Port)}}, //nolint:gosec // a port
	}}, metav1.UpdateOptions{})
	must(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "wasmctl-1", Labels: map[string]string{"app.kubernetes.io/name": "wasmctl"}},
		Spec:       corev1.PodSpec{NodeName: ns, Containers: []corev1.Container{{Name: "wasmctl", Image: "wasmctl"}}, AutomountServiceAccountToken: new(false)},
	}
	pod, err = client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	if _, err := Find(t.Context(), cluster.RESTConfig(), ns, ""); err == nil || !strings.Contains(err.Error(), "no pod with the label") {
		t.Error(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wasmctl", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	_, err = client.CoreV1().Pods(ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	for _, name := range []string{"", "wasmctl-1"} {
		found, err := Find(t.Context(), cluster.RESTConfig(), ns, name)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		asks(t, &found[0])
	}
	limited := devclustertest.Limited(t, cluster, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	found, err := Find(t.Context(), limited, ns, "")
	must(t, err)
	if _, err := found[0].Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "pods/exec") {
		t.Errorf("without the right to pods/exec: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDial_ExplainsFailures in the words of the command in the pod, or of the API server.
func TestDial_ExplainsFailures(t *testing.T) {
	for name, c := range map[string]struct {
		stderr, want string
		code         int
	}{
		"no process":  {stderr: "wasmctl: no wasmctl process is running: start one\n", code: 2, want: "pod[wasmctl-system/wasmctl-1]: no wasmctl process is running: start one"},
		"older":       {stderr: "wasmctl: unknown command \"stdio\"\nSee 'wasmctl --help'\n", code: 2, want: "older than this one"},
		"not wasmctl": {want: "not that of wasmctl"},
		"fails":       {code: 126, want: "exit code 126"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(kubelet(t, func(_ []string, _ io.Reader, _, stderr io.Writer) int {
				_, _ = io.WriteString(stderr, c.stderr)
				return c.code
			}))
			defer api.Close()
			p := podAt(api.URL)
			_, err := admin.NewClientOver(p.String(), p.Dial).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	t.Run("forbidden", func(t *testing.T) {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"User \"jo\" cannot create resource \"pods/exec\"","reason":"Forbidden","code":403}`)
		}))
		defer api.Close()
		_, err := podAt(api.URL).Dial(t.Context())
		if err == nil || !strings.Contains(err.Error(), `User "jo" cannot create resource "pods/exec"`) {
			t.Error(err)
		}
	})
}

// TestRunning_HasThePodsOfWasmctl, ordered, with the container and the program of each.
func TestRunning_HasThePodsOfWasmctl(t *testing.T) {
	pod := func(name string, runs bool, containers ...corev1.Container) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{}}, Spec: corev1.PodSpec{Containers: containers}}
		for _, c := range containers {
			st := corev1.ContainerStatus{Name: c.Name}
			if runs {
				st.State.Running = &corev1.ContainerStateRunning{}
			}
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, st)
		}
		return p
	}
	ours, proxy := corev1.Container{Name: "wasmctl"}, corev1.Container{Name: "proxy"}
	chosen := pod("b", true, proxy, corev1.Container{Name: "host", Command: []string{"/opt/wasmctl", "serve"}})
	chosen.Annotations[defaultContainer] = "host"
	ending := pod("c", true, ours)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	got := running([]corev1.Pod{pod("e", true, corev1.Container{Name: "own"}), ending, pod("d", false, ours), chosen, pod("a", true, proxy, ours), pod("f", true)})
	want := []Pod{
		{Namespace: "ns", Name: "a", container: "wasmctl", binary: "/wasmctl"},
		{Namespace: "ns", Name: "b", container: "host", binary: "/opt/wasmctl"},
		{Namespace: "ns", Name: "e", container: "own", binary: "/wasmctl"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Pod{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
