// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// auditPolicy makes the API server log each write after its answer.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// audit is the log of an API server of all writes: user, request and time, by one clock.
type audit struct {
	t       *testing.T
	cluster *devcluster.Cluster
	file    string
}

// written is a write that the API server has carried out.
type written struct {
	User     struct{ Username string }
	Verb     string
	Object   struct{ Resource, Namespace, Name, Subresource string } `json:"objectRef"`
	Received time.Time                                               `json:"requestReceivedTimestamp"`
	Done     time.Time                                               `json:"stageTimestamp"`
	Response struct{ Code int }                                      `json:"responseStatus"`
}

// newAudit starts a control plane that keeps an audit log.
func newAudit(t *testing.T, apiServerFlags ...string) *audit {
	t.Helper()
	dir := t.TempDir()
	policy, file := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return &audit{t: t, file: file, cluster: devclustertest.Own(t, append(apiServerFlags, "--audit-policy-file="+policy, "--audit-log-path="+file, "--audit-log-maxsize=4096", "--audit-log-mode=blocking")...)}
}

// newUser returns the client configuration of a new user with all rights, and the name
// of the user in the audit log.
func (a *audit) newUser() (rc *rest.Config, user string) {
	a.t.Helper()
	rc = devclustertest.LimitedClusterWide(a.t, a.cluster, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		a.t.Fatal(err)
	}
	return rc, e2e.WhoAmI(a.t, client)
}

// all returns the writes to objects of namespaces that have succeeded.
func (a *audit) all() (all []written) {
	a.t.Helper()
	text, err := os.ReadFile(a.file)
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var w written
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			a.t.Fatalf("%s: %v", line, err)
		}
		if w.Object.Namespace != "" && w.Response.Code < 300 {
			all = append(all, w)
		}
	}
	return all
}

// writes returns the writes of a user to a namespace: those of Leases, and the others.
func (a *audit) writes(user, ns string) (leases, others []written) {
	a.t.Helper()
	for _, w := range a.all() {
		switch {
		case w.User.Username != user || w.Object.Namespace != ns:
		case w.Object.Resource == "leases":
			leases = append(leases, w)
		default:
			others = append(others, w)
		}
	}
	return leases, others
}
