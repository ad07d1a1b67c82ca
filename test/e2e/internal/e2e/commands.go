// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// progress matches the lines of a task that takes longer than a second, which happens on a busy machine. They are no warnings.
var progress = regexp.MustCompile(`(?m)^[a-z][^:=]*, (\d+h)?(\d+m)?\d+s\n`)

// Output runs a command that must succeed without a warning, and returns its output.
func Output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "wasmctl", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || len(progress.ReplaceAll(errs.Bytes(), nil)) > 0 {
		t.Fatalf("wasmctl %q: %v: %s", args, err, &errs)
	}
	return out.String()
}

// Exec runs a command, and returns its exit code and all of its output.
func Exec(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command("wasmctl", args...)
	cmd.Env = env
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

// Steer runs a command that looks at or steers the process behind a socket. The command
// must succeed; Steer returns its output.
func Steer(t *testing.T, command, socket string, args ...string) string {
	t.Helper()
	args = append([]string{command, "--socket", socket}, args...)
	out, err := exec.Command("wasmctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("wasmctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Refused is like Steer, but for a command that must fail. It also returns the exit code.
func Refused(t *testing.T, command, socket string, args ...string) (int, string) {
	t.Helper()
	out, err := exec.Command("wasmctl", append([]string{command, "--socket", socket}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("wasmctl %s %q: %v: %s", command, args, err, out)
	}
	return exit.ExitCode(), string(out)
}

// Manifests returns the output of wasmctl manifests, which may print notes.
func Manifests(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("wasmctl", append([]string{"manifests"}, args...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("wasmctl manifests %q: %v", args, err)
	}
	return out
}

// NewSocket returns a path for a socket. Paths of t.TempDir can be too long for one.
func NewSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wasmctl-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// ReadFile reads a file, which must exist.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Replace writes a file in one step: a process that follows the file reads the old
// content or the new one.
func Replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// WriteKubeconfig writes a client configuration as a kubeconfig file.
func WriteKubeconfig(t *testing.T, rc *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: rc.Host, CertificateAuthorityData: rc.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: rc.BearerToken, ClientCertificateData: rc.CertData, ClientKeyData: rc.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Buffer is a buffer that one goroutine writes and another reads.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that has been written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// RegistryOf starts a registry that requires a password, and returns the environment of
// a process that has logged in to it.
func RegistryOf(t *testing.T) (reg *ocitest.Registry, env []string) {
	t.Helper()
	reg = ocitest.New(t, ocitest.Basic("user", "secret"))
	dir := t.TempDir()
	config := `{"auths": {"` + reg.Host + `/team": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("user:secret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return reg, append(os.Environ(), "DOCKER_CONFIG="+dir, "XDG_CACHE_HOME="+dir)
}

// ChildOf returns a child of a process that runs a command of wasmctl; 0 if there is none.
func ChildOf(t *testing.T, parent int, command string) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if pid, _ := strconv.Atoi(child); err == nil && strings.Contains(string(line), command) {
				return pid
			}
		}
	}
	return 0
}

// NeedsGuestProcesses skips a test if --isolate is not available.
func NeedsGuestProcesses(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: --isolate needs Linux")
	}
}

// Pause waits between two requests to the API server.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
