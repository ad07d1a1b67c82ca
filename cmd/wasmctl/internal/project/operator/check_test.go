// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checked writes a project on controller-runtime, and checks it.
func checked(t *testing.T, files map[string]string) *Report {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "go.mod"), "module example.com/op\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n")
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	p, err := Find(root)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	r, err := p.Check(t.Context(), SDK{Checkout: "../../../../.."}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const fineMain = `package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/op/internal/controller"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		panic(err)
	}
	if err := controller.Setup(mgr); err != nil {
		panic(err)
	}
	panic(mgr.Start(ctrl.SetupSignalHandler()))
}
`

const fineController = `package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

func Setup(mgr ctrl.Manager) error {
	w, _ := certwatcher.New("a", "b")
	if err := mgr.Add(w); err != nil {
		return err
	}
	own, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return err
	}
	if err := mgr.Add(own); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
}
`

// TestCheck_AnOrdinaryProjectWorks: its controllers and rights are found, and
// nothing that does not work.
func TestCheck_AnOrdinaryProjectWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	r := checked(t, map[string]string{"cmd/main.go": fineMain, "internal/controller/c.go": fineController})
	if got := fmt.Sprintf("%+v", r.Controllers); got != "[{Place:{File:internal/controller/c.go Line:16} For:v1.ConfigMap Owns:[v1.Secret v1.Pod] Watches:[v1.Node]}]" {
		t.Errorf("controllers %s", got)
	}
	if len(r.Findings) > 0 || r.Fails() > 0 || len(r.Capabilities) != 1 || r.Capabilities[0].Resource != "pods" {
		t.Errorf("%+v", r)
	}
}

// troubles is a package in which each line that ends in a comment does not work.
const troubles = `package controller

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"example.com/op/internal/broken"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const minute = time.Minute

var limit = time.Hour

type beside struct{}

type embeds struct{ broken.Type }

var _ = embeds{}.Promoted /* follows from what package broken is said to lack */

func (beside) Start(context.Context) error { return nil }

func Setup(mgr ctrl.Manager) error {
	_ = mgr.Add(beside{})                                                    // warn mgr.Add
	_ = mgr.Add(manager.RunnableFunc(func(context.Context) error { return nil })) // warn mgr.Add
	_ = source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{}) // fail source.Channel
	_, _ = cluster.New(mgr.GetConfig())                                      // fail cluster.New
	_, _ = rest.InClusterConfig()
	i, _ := mgr.GetCache().GetInformer(context.TODO(), &corev1.Pod{})
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{})              // fail (cache.Informer).AddEventHandler
	_, _ = kubernetes.NewForConfig(mgr.GetConfig())                          // warn kubernetes.NewForConfig
	_, _ = net.Listen("tcp", ":1")                                           // warn net.Listen
	_ = http.ListenAndServe(":1", nil)                                       // warn http.ListenAndServe
	_, _ = http.Get("http://example.com")                                    // warn http.Get
	_ = exec.Command("ls").Run()                                             // warn exec.Command
	time.AfterFunc(0, func() {})                                             // warn time.AfterFunc
	_, _ = os.ReadFile("/etc/x")                                             // warn os.ReadFile
	_, _ = time.LoadLocation("Europe/Berlin")                                // warn time.LoadLocation
	_ = template.New("x")
	time.Sleep(2 * minute)                                                   // warn time.Sleep may last 2m0s, and a run ends after 30s
	_, end := context.WithTimeout(context.TODO(), 31*time.Second)            // warn context.WithTimeout
	end()
	_, end = context.WithTimeout(context.TODO(), limit)
	end()
	_ = wait.PollUntilContextTimeout(context.TODO(), time.Minute, 30*time.Second, false, nil)
	_ = wait.PollUntilContextTimeout(context.TODO(), time.Second, time.Hour, false, nil) // warn wait.PollUntilContextTimeout
	go Setup(mgr)                                                            // warn starts a goroutine
	mgr.NoSuchMethod()                                                       // fail mgr.NoSuchMethod
	var _ = source.NoSuchThing                                               // fail undefined: source.NoSuchThing
	return nil
}
`

// TestCheck_FindsEachTrouble: it finds each problem at its line, and nothing else. A compile error
// in one package does not hide problems in others.
func TestCheck_FindsEachTrouble(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	r := checked(t, map[string]string{
		"cmd/main.go":                     fineMain,
		"internal/controller/c.go":        troubles,
		"internal/broken/b.go":            "package broken\n\ntype Type struct{ missing.Type }\n",
		"internal/controller/c_test.go":   "package controller\n\nimport _ \"sigs.k8s.io/controller-runtime/pkg/envtest\"\n",
		"internal/controller/envtests.go": "package controller\n\nimport _ \"sigs.k8s.io/controller-runtime/pkg/envtest\"\n",
	})
	want := map[string]string{"internal/controller/envtests.go:3": "fail ", "internal/broken/b.go:3": "fail undefined: missing", ":0": "warn example.com/op/internal/controller imports text/template"}
	for i, line := range strings.Split(troubles, "\n") {
		if _, what, ok := strings.Cut(line, "// "); ok {
			want[fmt.Sprintf("internal/controller/c.go:%d", i+1)] = what
		}
	}
	for _, f := range r.Findings {
		at := fmt.Sprintf("%s:%d", f.File, f.Line)
		if want[at] == "" || !strings.Contains(string(f.Verdict)+" "+f.What, strings.TrimSpace(want[at])) || f.Do == "" {
			t.Errorf("%s %+v, want %q", at, f, want[at])
		}
		delete(want, at)
	}
	if len(want) > 0 {
		t.Errorf("not found: %q", want)
	}
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Do, "tests only") }) {
		t.Error("envtest without advice")
	}
	if r.Fails() < 5 {
		t.Errorf("%d fail", r.Fails())
	}
}

// TestCheck_ALibraryIsOneFinding: however many of its lines do not compile; the project's
// own are each one.
func TestCheck_ALibraryIsOneFinding(t *testing.T) {
	const said = `"Error":{"Err":"# x\nx.go:3:1: undefined: a\nx.go:4:1: undefined: b\ny.go:9:1: undefined: c\n"}}`
	list, err := readPackages(strings.NewReader(`{"ImportPath":"example.com/lib/x",` + said + `{"Module":{"Main":true},` + said))
	if err != nil {
		t.Fatal(err)
	}
	c := &compiled{dir: t.TempDir()}
	if lib := c.broken(&list[0]); len(lib) != 1 || lib[0].Line != 3 || lib[0].What != "undefined: a; and 2 more in package example.com/lib/x" {
		t.Errorf("of a library: %+v", lib)
	}
	if own := c.broken(&list[1]); len(own) != 3 {
		t.Errorf("of the project: %+v", own)
	}
}

// TestVersion_OldOnesAreNamed: at their line of go.mod.
func TestVersion_OldOnesAreNamed(t *testing.T) {
	for v, want := range map[string]int{"v0.12.3": 4, "v0.14.7": 4, "v0.15.0": 0, "v0.24.1": 0} {
		root := t.TempDir()
		write(t, filepath.Join(root, "go.mod"), "module x\n\nrequire (\n\tsigs.k8s.io/controller-runtime "+v+"\n)\n")
		got := (&Project{Root: root}).version()
		if (want == 0) != (got == nil) || want > 0 && (got[0].Line != want || got[0].File != "go.mod") {
			t.Errorf("%s: %+v", v, got)
		}
	}
}

const reading = `package main

import (
	"flag"
	"os"

	"github.com/kelseyhightower/envconfig"
	"github.com/spf13/viper"
	ctrl "sigs.k8s.io/controller-runtime"
)

type spec struct {
	MaxPods int ` + "`split_words:\"true\" default:\"3\"`" + `
	Cloud   struct{ Region string }
}

const suffix = "_NAME"

type config struct {
	Region string ` + "`env:\"REGION,required\" envDefault:\"eu\"`" + `
	Bucket string ` + "`envconfig:\"BUCKET\" default:\"b\"`" + `
	Hidden string ` + "`env:\"-\" json:\"env\"`" + `
}

func main() {
	var addr string
	flag.StringVar(&addr, "addr", ":80", "where")
	dry := flag.Bool("dry-run", false, "only look")
	flag.Parse()
	_ = os.Getenv("POD" + suffix)
	_, _ = os.LookupEnv("POD_NAME")
	_ = os.Getenv(addr)
	_, _ = dry, config{}
	_, _ = os.ReadFile("/etc/app/config.yaml")
	_ = flag.String("config-file", "/etc/app/more.yaml", "")
	_ = flag.String("metrics", "/metrics", "where")
	viper.SetEnvPrefix("app")
	viper.BindEnv("zone")
	viper.BindEnv("key", "API_KEY")
	envconfig.Process("op", &spec{})
	mgr, _ := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	_ = mgr.Start(ctrl.SetupSignalHandler())
}
`

// TestCheck_ListsInputs: flags and variables with constant names, each once.
func TestCheck_ListsInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	r := checked(t, map[string]string{
		"cmd/main.go":      reading,
		"cmd/native.go":    "//go:build !wasm\n\npackage main\n",
		"go.mod":           "module example.com/op\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\nrequire github.com/spf13/viper v1.0.0\nrequire github.com/kelseyhightower/envconfig v1.0.0\n\nreplace github.com/spf13/viper => ./viper\nreplace github.com/kelseyhightower/envconfig => ./envconfig\n",
		"viper/go.mod":     "module github.com/spf13/viper\n",
		"viper/a.go":       "package viper\n\nimport _ \"net/http\"\n\nfunc SetEnvPrefix(string) {}\n\nfunc BindEnv(...string) {}\n",
		"envconfig/go.mod": "module github.com/kelseyhightower/envconfig\n",
		"envconfig/a.go":   "package envconfig\n\nfunc Process(string, interface{}) {}\n",
	})
	var found []string
	for _, f := range r.Findings {
		found = append(found, fmt.Sprint(f.File, " ", f.What))
	}
	for _, want := range []string{"cmd/native.go the file is not in a module: //go:build !wasm", "cmd/main.go github.com/spf13/viper imports net/http: if it connects, that fails: a module reaches the API server only"} {
		if !slices.Contains(found, want) {
			t.Errorf("findings %q, want %q", found, want)
		}
	}
	var got []string
	for _, in := range r.Inputs {
		got = append(got, fmt.Sprintf("%s %s %q %d", in.Kind, in.Name, in.Default, in.Line))
	}
	want := []string{
		`env API_KEY "" 39`, `env APP_ZONE "" 38`, `env BUCKET "b" 21`, `env OP_CLOUD_REGION "" 40`, `env OP_MAX_PODS "3" 40`, `env POD_NAME "" 30`, `env REGION "eu" 20`,
		`file /etc/app/config.yaml "" 34`, `file /etc/app/more.yaml "" 35`,
		`flag addr ":80" 27`, `flag config-file "/etc/app/more.yaml" 35`, `flag dry-run "false" 28`, `flag metrics "/metrics" 36`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("inputs %q, want %q", got, want)
	}
}
