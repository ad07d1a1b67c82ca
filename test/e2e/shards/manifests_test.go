// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// seenSchemas records the flow schemas that admit requests for Leases.
type seenSchemas struct {
	http.RoundTripper

	uid string
}

// RoundTrip implements http.RoundTripper.
func (s *seenSchemas) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		s.uid = answer.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
	}
	return answer, err
}

// TestManifestsShards_RunUnderTheRightsThatTheyGive: the API server accepts the output
// unchanged. With only the rights of the service account and the printed arguments, two
// replicas share the objects, and hand all of them over to one. Only requests for their
// Leases have priority.
func TestManifestsShards_RunUnderTheRightsThatTheyGive(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	file := filepath.Join(t.TempDir(), "controllers.yaml")
	e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {grant: {manifest: true}}\ncontrollers:\n- {name: cmg, module: "+e2e.Example(t, "configmapgenerator")+"}\n"))
	printed := e2e.Manifests(t, "-f", file, "--kubeconfig", cluster.Kubeconfig(), "--replicas", "2", "--shards", "--max-replicas", "5", "--modules", "image")
	kinds := map[string]int{}
	for _, o := range devclustertest.Apply(t, cluster, printed) {
		kinds[o.GetKind()]++
	}
	for _, kind := range []string{"Deployment", "PodDisruptionBudget", "FlowSchema", "HorizontalPodAutoscaler"} {
		if kinds[kind] != 1 {
			t.Errorf("no %s: %v", kind, kinds)
		}
	}
	const ns, leases = "wasmctl-system", "coordination.k8s.io/leases"
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	token, err := client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "wasmctl", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(cluster.RESTConfig())
	rc.BearerToken = token.Status.Token
	enginetest.Until(t, "the API server knows the roles", func() bool { return e2e.MayDo(t, rc, ns, "delete "+leases+" any") })
	for _, verb := range []string{"get", "list", "watch", "create", "update"} {
		if !e2e.MayDo(t, rc, ns, verb+" "+leases+" any") || e2e.MayDo(t, rc, "default", verb+" "+leases+" any") {
			t.Errorf("%s: allowed %t, elsewhere %t", verb, e2e.MayDo(t, rc, ns, verb+" "+leases+" any"), e2e.MayDo(t, rc, "default", verb+" "+leases+" any"))
		}
	}
	schema, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), "wasmctl-system.wasmctl.leases", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := &seenSchemas{}
	watched := rest.CopyConfig(rc)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.RoundTripper = next; return seen })
	account := kubernetes.NewForConfigOrDie(watched)
	enginetest.Until(t, "requests for Leases have their flow schema", func() bool {
		_, err := account.CoordinationV1().Leases(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && seen.uid == string(schema.UID)
	})
	if _, _ = account.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); seen.uid == string(schema.UID) || seen.uid == "" { // forbidden or not
		t.Errorf("requests for ConfigMaps have the flow schema %q", seen.uid)
	}

	deployment, err := client.AppsV1().Deployments(ns).Get(t.Context(), "wasmctl", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if got := strings.Join(args[len(args)-4:], " "); got != "--shards 64 --leader-elect-resource-name wasmctl" {
		t.Fatalf("the arguments are %q", args)
	}
	args = append([]string{"-f", file, "--socket", "none", "--kubeconfig", e2e.WriteKubeconfig(t, rc), "--leader-elect-resource-namespace", ns}, args[len(args)-4:]...)
	first := e2e.Run(t, args...)
	first.WantLine(`"msg":"sharing the objects with other replicas"`, `"controller":"cmg"`, `"by":"metadata.namespace"`)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/sample.yaml")
	first.WantLine(`"msg":"reconciled"`, `"controller":"cmg"`)
	second := e2e.Run(t, args...)
	second.WantLine(`"msg":"sharing the objects with other replicas"`)
	first.Signal(syscall.SIGTERM)
	first.WantExit(e2e.ExitOK)
	second.WantLine(`"msg":"reconciled"`, `"controller":"cmg"`)
	second.Signal(syscall.SIGTERM)
	second.WantExit(e2e.ExitOK)
	for _, c := range []*e2e.Process{first, second} {
		for _, bad := range []string{"forbidden", "allows less than the module is granted"} {
			if text := c.Text(); strings.Contains(text, bad) {
				t.Errorf("output contains %q:\n%s", bad, text)
			}
		}
	}
}
