// SPDX-License-Identifier: Apache-2.0

package operator

import "regexp"

// advice is reported if the project uses one of its symbols. A name ending in a dot means all
// functions of a package.
type advice struct {
	verdict  Verdict
	what, do string
	symbols  []string
}

const (
	ofRuntime = "sigs.k8s.io/controller-runtime/pkg/"
	ofClient  = "k8s.io/client-go/"

	ofInformer = "(" + ofRuntime + "cache.Informer)."
)

var advices = []advice{
	{Fail, "gets events from elsewhere than the API server", "watch a kind with Watches, or return RequeueAfter; wasmctl build --without sources leaves it out", []string{
		ofRuntime + "source.Channel", ofRuntime + "source.TypedChannel", ofRuntime + "source.Func", ofRuntime + "source.TypedFunc", ofRuntime + "source.Informer",
		ofInformer + "AddEventHandler", ofInformer + "AddEventHandlerWithResyncPeriod", ofInformer + "AddEventHandlerWithOptions",
	}},
	{Fail, "opens a cluster of its own", "use the manager's client, and declare what to watch with the builder", []string{ofRuntime + "cluster.New"}},
	{Warn, "makes a client of client-go", "it works within Reconcile, for kinds of the manager's scheme; watches, exec and logs do not", []string{
		ofClient + "kubernetes.NewForConfig", ofClient + "kubernetes.NewForConfigOrDie", ofClient + "dynamic.NewForConfig", ofClient + "dynamic.NewForConfigOrDie", ofClient + "rest.RESTClientFor",
	}},
	{Warn, "asks the API server for its kinds, and gets those of the manager's scheme", "name what your cluster lacks: wasmctl build --without KIND.GROUP", []string{
		ofClient + "discovery.", "(k8s.io/apimachinery/pkg/api/meta.RESTMapper).RESTMapping", "(k8s.io/apimachinery/pkg/api/meta.RESTMapper).RESTMappings",
	}},
	{Warn, "watches or elects by itself, which fails when it is used", "leave it to the host: it watches, elects and has the cache", []string{
		"(" + ofRuntime + "client.WithWatch).Watch",
		ofClient + "informers.", ofClient + "dynamic/dynamicinformer.", ofClient + "tools/leaderelection.",
	}},
	{Warn, "waits for the election: the first run of an instance closes the channel, and goroutines of main continue only while runnables run", "add the work by mgr.Add(manager.RunnableFunc(...)): one replica runs it", []string{
		"(" + ofRuntime + "manager.Manager).Elected",
	}},
	{Warn, "connects to a pod, which fails when it is used: a module has no streams", "let a Job or a sidecar do it, and report by an object", []string{
		ofClient + "tools/remotecommand.", ofClient + "tools/portforward.", "(" + ofClient + "kubernetes/typed/core/v1.PodExpansion).GetLogs",
	}},
	{Warn, "listens, which fails when it is called: a module has no sockets", "serve it by a program of its own", []string{
		"net.Listen", "net.ListenTCP", "net.ListenUDP", "net.ListenUnix", "net.ListenPacket", "(*net.ListenConfig).Listen", "net/http.ListenAndServe", "net/http.ListenAndServeTLS",
		"net/http.Serve", "net/http.ServeTLS", "(*net/http.Server).ListenAndServe", "(*net/http.Server).ListenAndServeTLS", "(*net/http.Server).Serve", "google.golang.org/grpc.NewServer",
	}},
	{Warn, "connects, which fails when it is called: a module reaches the API server only", "let a Job or another program do it, and report by an object", []string{
		"net.Dial", "net.DialTimeout", "(*net.Dialer).Dial", "(*net.Dialer).DialContext", "net/http.Get", "net/http.Post", "net/http.PostForm", "net/http.Head",
		"(*net/http.Client).Do", "(*net/http.Client).Get", "(*net/http.Client).Post", "google.golang.org/grpc.Dial", "google.golang.org/grpc.NewClient", "database/sql.Open",
	}},
	{Warn, "runs a function later: no run waits for it, so it never happens", "return RequeueAfter, and do the work in Reconcile", []string{
		"time.AfterFunc", "(*github.com/robfig/cron.Cron).Start", "(*github.com/robfig/cron/v3.Cron).Start",
	}},
	{Warn, "runs a program, which fails when it is called", "let a Job do it", []string{"os/exec.Command", "os/exec.CommandContext", "os.StartProcess"}},
	{Warn, "reads files: a module has only the files of its build", "add them with wasmctl build --files PATH=FILE, or the service account's namespace with --namespace", []string{
		"os.ReadFile", "os.Open", "os.ReadDir", "os.DirFS", "io/ioutil.ReadFile", "path/filepath.Walk", "path/filepath.WalkDir", "path/filepath.Glob",
	}},
	{Warn, "writes files, which fails when it is called: those of a module are read only", "keep it in memory, or in an object", []string{
		"os.OpenFile", "os.WriteFile", "os.Create", "os.CreateTemp", "os.Mkdir", "os.MkdirAll", "os.MkdirTemp", "os.Remove", "os.RemoveAll", "os.Rename", "io/ioutil.WriteFile", "io/ioutil.TempDir", "io/ioutil.TempFile",
	}},
}

// symbols maps the names of symbols to their advice.
var symbols = func() map[string]*advice {
	m := map[string]*advice{}
	for i := range advices {
		for _, s := range advices[i].symbols {
			m[s] = &advices[i]
		}
	}
	return m
}()

// connecting are the packages with which libraries connect to others.
var connecting = []string{"net/http", "crypto/tls", "database/sql", "google.golang.org/grpc"}

// quiet matches libraries that import these, and that operators use without a connection.
var quiet = regexp.MustCompile(`^((sigs\.)?k8s\.io|go\.uber\.org/zap|github\.com/prometheus/client_golang)(/|$)`)

var mayConnect = advice{Warn, "if it connects, that fails: a module reaches the API server only", "let a Job or another program do it, and report by an object", nil}

const addsRunnable = "(" + ofRuntime + "manager.Manager).Add"

var runsBeside = advice{Warn, "runs something in addition to the controllers: the controller runnables does this, in an instance of its own", "let it share no variables with the controllers, and wait no longer than 30 s at a time; wasmctl build --without runnables leaves it out", nil}

// harmless are types that may be added to a manager: the host does their work, or they are
// controllers.
var harmless = map[string]bool{
	"*" + ofRuntime + "certwatcher.CertWatcher": true, ofRuntime + "webhook.Server": true, ofRuntime + "metrics/server.Server": true, ofRuntime + "cluster.Cluster": true,
	ofRuntime + "cache.Cache":           true,
	ofRuntime + "controller.Controller": true, ofRuntime + "controller.TypedController[" + ofRuntime + "reconcile.Request]": true,
}

const zone = "time.LoadLocation"

var needsZones = advice{Warn, "names a time zone, and a module has none of the machine", "import _ \"time/tzdata\"", nil}
