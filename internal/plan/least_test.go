// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

const webCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.plan.wasmctl.dev}, spec: {
  group: plan.wasmctl.dev, scope: Namespaced, names: {plural: webs, kind: Web},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// signer is the signer of the test's certificates.
const signer = "plan.wasmctl.dev/test"

// guarded is the manifest of a module whose writes need rights in addition to the right to write.
var guarded = abi.Manifest{
	For: &abi.Watch{Group: "plan.wasmctl.dev", Version: "v1", Kind: "Web"},
	Capabilities: []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"create", "patch"}},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresources: []string{"approval", "status"}, Verbs: []string{"patch"}},
		{Group: "certificates.k8s.io", Resource: "signers", Verbs: []string{"approve", "sign"}, Names: []string{signer}},
		{Group: "rbac.authorization.k8s.io", Resource: "roles", Verbs: []string{"create", "escalate"}},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Verbs: []string{"create"}},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verbs: []string{"bind"}, Names: []string{"view"}},
	},
}

// TestLeastRights_IncludeThoseOfAdmission: with the printed rights, each write of the module succeeds on
// an API server with all parts of Kubernetes that ask for further rights. Without these further rights,
// each of the writes is refused, and the missing right is known.
func TestLeastRights_IncludeThoseOfAdmission(t *testing.T) {
	t.Parallel()
	w := newAdmission(t)
	admin, err := kubeapi.NewClient(w.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	finder := &Guess{Resolver: kinds.NewResolver(admin, slog.New(slog.DiscardHandler))}
	least, err := LeastRights(t.Context(), Options{}, "web", finder, Asking{Manifest: &guarded, CanCall: func(abi.Op) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	enough := w.api(t, "enough", least.Rules)
	for name, write := range w.writes(t, "enough") {
		if err := write(enough); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if denied := enough.Denied(); len(denied) > 0 {
		t.Errorf("denied: %+v", denied)
	}
	further := func(c abi.Capability) bool {
		return slices.Equal(c.Subresources, []string{"finalizers"}) || c.Resource == "signers" || c.Resource == "clusterroles"
	}
	rules := slices.DeleteFunc(slices.Clone(least.Rules), further)
	for i := range rules {
		rules[i].Verbs = slices.DeleteFunc(slices.Clone(rules[i].Verbs), func(v string) bool { return v == "escalate" })
	}
	less := w.api(t, "less", rules)
	for name, write := range w.writes(t, "less") {
		if err := write(less); err == nil || !strings.Contains(err.Error(), "forbidden") && !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s without the further right: %v", name, err)
		}
	}
	var missing []string
	for _, d := range less.Denied() {
		if d.Where != "RBAC" || d.Message == "" {
			t.Errorf("%+v", d)
		}
		missing = append(missing, strings.Join(d.Rule.Verbs, " ")+" "+strings.Join(append([]string{d.Rule.Resource}, d.Rule.Subresources...), "/")+" "+strings.Join(d.Rule.Names, " "))
	}
	slices.Sort(missing)
	want := "approve signers " + signer + ",bind clusterroles view,escalate roles ,sign signers " + signer + ",update webs/finalizers "
	if got := strings.Join(missing, ","); got != want {
		t.Errorf("missing rights: %s\nwant %s", got, want)
	}
}

// admission is a control plane with the admission plugin of OpenShift.
type admission struct {
	cluster *devcluster.Cluster
	kube    kubernetes.Interface
	ns      string
}

func newAdmission(t *testing.T) *admission {
	t.Helper()
	c := devclustertest.Own(t, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
	devclustertest.Apply(t, c, []byte(webCRD))
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &admission{c, kube, devclustertest.Namespace(t, c)}
}

// api returns the API of a module under a new account with exactly these rights.
func (w *admission) api(t *testing.T, name string, rules []abi.Capability) *kubeapi.API {
	t.Helper()
	roles, err := grant.YAML(grant.RBAC(grant.Account{Namespace: w.ns, Name: name}, rules))
	if err != nil {
		t.Fatal(err)
	}
	devclustertest.Apply(t, w.cluster, roles)
	token, err := w.kube.CoreV1().ServiceAccounts(w.ns).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(w.cluster.RESTConfig())
	rc.BearerToken = token.Status.Token
	client, err := kubeapi.NewClient(rc)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the API server knows the roles", func() bool {
		return len(client.CheckAccess(t.Context(), kubeapi.Access{Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Verbs: []string{"create"}})) == 0
	})
	log := slog.New(slog.DiscardHandler)
	api, err := kubeapi.New(kubeapi.Config{
		Client: client, Resolver: kinds.NewResolver(client, log), Controller: "web", Logger: log,
		Policy: kubeapi.NewPolicy(guarded.Capabilities),
	})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// writes returns the writes of the module, each of which needs a further right.
func (w *admission) writes(t *testing.T, name string) map[string]func(*kubeapi.API) error {
	t.Helper()
	web := devclustertest.ApplyIn(t, w.cluster, w.ns, []byte("{apiVersion: plan.wasmctl.dev/v1, kind: Web, metadata: {name: "+name+"}}"))[0]
	object := func(apiVersion, kind string, more map[string]any) map[string]any {
		o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": w.ns}}
		maps.Copy(o, more)
		return o
	}
	call := func(op abi.Op, request map[string]any) func(*kubeapi.API) error {
		return func(api *kubeapi.API) error {
			if got := api.Call(t.Context(), op, packed(t, request)); got.Status != abi.StatusOK {
				return errors.New(string(got.Body))
			}
			return nil
		}
	}
	const rbac = "rbac.authorization.k8s.io"
	condition := func(subresource, kind string) func(*kubeapi.API) error {
		request := name + "-" + subresource
		w.request(t, request)
		list := []any{map[string]any{"type": kind, "status": "True", "reason": "Test"}}
		return call(abi.OpAPIPatch, map[string]any{
			"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "name": request, "subresource": subresource,
			"patchType": "strategic", "patch": map[string]any{"status": map[string]any{"conditions": list}},
		})
	}
	return map[string]func(*kubeapi.API) error{
		"declare a child": func(api *kubeapi.API) error {
			kind := kinds.Kind{Group: "plan.wasmctl.dev", Version: "v1", Kind: "Web", Resource: "webs", Namespaced: true}
			return api.Declare(t.Context(), kubeapi.Owner{Kind: kind, Object: packed(t, web.Object)}, &abi.Declared{Apply: [][]byte{packed(t, object("v1", "ConfigMap", nil))}})
		},
		"approve": condition("approval", "Approved"),
		"sign":    condition("status", "Failed"),
		"create a role": call(abi.OpAPICreate, map[string]any{"object": object(rbac+"/v1", "Role", map[string]any{
			"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}}},
		})}),
		"bind a role": call(abi.OpAPICreate, map[string]any{"object": object(rbac+"/v1", "RoleBinding", map[string]any{
			"roleRef": map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
		})}),
	}
}

// request makes a CertificateSigningRequest.
func (w *admission) request(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func packed(t *testing.T, object map[string]any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, object)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
