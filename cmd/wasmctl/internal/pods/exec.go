// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Command is the command that connects its standard streams to the socket of the process in its pod.
const Command = "stdio"

// maxStderr bounds the error output of Command that becomes part of an error.
const maxStderr = 4 << 10

// Dial starts Command in the pod, as kubectl exec does, and returns a connection to the socket of the process.
func (p *Pod) Dial(ctx context.Context) (net.Conn, error) {
	executor, err := p.executor()
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = here.Close() })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the connection outlives the dial
	ctx = klog.NewContext(ctx, klog.Logger{})                     // client-go logs the end of a connection as an error
	c := &conn{Conn: here, cancel: cancel, ended: make(chan struct{})}
	var stderr limited
	var failed error // valid once ended is closed
	go func() {
		defer close(c.ended)
		failed = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: there, Stdout: there, Stderr: &stderr})
		_ = there.Close()
	}()
	greeted := admin.ReadGreeting(here)
	if stopped := stop(); greeted == nil && stopped {
		return c, nil
	}
	_ = c.Close()
	return nil, reason(failed, &stderr, greeted)
}

// reason returns the reason why a Command did not connect. err is the error of its execution.
func reason(err error, stderr *limited, greeted error) error {
	said := text.Line(strings.TrimSpace(stderr.String()))
	upgrade, _ := errors.AsType[*httpstream.UpgradeFailureError](err)
	switch {
	case upgrade != nil:
		return upgrade.Cause
	case said != "" && strings.Contains(said, "unknown command"):
		return errors.New("its wasmctl is older than this one, and cannot be reached this way: run its own with kubectl exec")
	case said != "":
		return errors.New(strings.TrimPrefix(said, "wasmctl: "))
	case err != nil:
		return err
	}
	return greeted
}

// executor returns an executor of Command. Like kubectl, it uses a websocket, and SPDY if the API server or
// a proxy does not support that.
func (p *Pod) executor() (remotecommand.Executor, error) {
	client, err := typedcorev1.NewForConfig(p.config)
	if err != nil {
		return nil, err
	}
	url := client.RESTClient().Post().Resource("pods").Namespace(p.Namespace).Name(p.Name).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: p.container, Command: []string{p.binary, Command}, Stdin: true, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec).URL()
	websocket, err := remotecommand.NewWebSocketExecutor(p.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(p.config, "POST", url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		if upgrade, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok {
			return !apierrors.IsForbidden(upgrade.Cause) && !apierrors.IsUnauthorized(upgrade.Cause) // SPDY would lose the reason
		}
		return httpstream.IsHTTPSProxyError(err)
	})
}

// conn is a connection whose other end is an execution of Command.
type conn struct {
	net.Conn

	cancel context.CancelFunc
	ended  chan struct{} // closed when the execution has ended
}

// Close closes the connection, and waits until the execution has ended.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.cancel()
	<-c.ended
	return err
}

// limited is a writer that retains only the first bytes. It is safe for concurrent use.
type limited struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(p[:min(len(p), maxStderr-l.b.Len())])
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
