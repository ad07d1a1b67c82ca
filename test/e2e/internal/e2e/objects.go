// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// Resources that tests read and write.
var (
	Generators  = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}
	WebApps     = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "webapps"}
	ConfigMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// GeneratorCRD is the file with the CRD of the example configmapgenerator.
const GeneratorCRD = root + "/examples/configmapgenerator/crd.yaml"

// CreateGenerator creates a ConfigMapGenerator. The last byte of its content selects the
// behavior of the guest modes.wasm.
func CreateGenerator(t *testing.T, client dynamic.Interface, ns, name, content string) {
	t.Helper()
	_, err := client.Resource(Generators).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"content": content},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// NewConfigMaps makes a namespace with four ConfigMaps on the shared control plane.
func NewConfigMaps(t *testing.T) (ns, kubeconfig string) {
	t.Helper()
	return NewConfigMapsOn(t, devclustertest.Shared(t))
}

// NewConfigMapsOn is NewConfigMaps on another control plane.
func NewConfigMapsOn(t *testing.T, cluster *devcluster.Cluster) (ns, kubeconfig string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns = devclustertest.Namespace(t, cluster)
	for i := range 4 {
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: enginetest.ObjectName(i)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return ns, cluster.Kubeconfig()
}

// MayDo asks the API server whether the user of a configuration may do something in a
// namespace, written as "verb group/resource/subresource name".
func MayDo(t *testing.T, rc *rest.Config, ns, what string) bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(what + " ")
	thing := strings.Split(words[1]+"/", "/")
	a := &authorizationv1.ResourceAttributes{Namespace: ns, Verb: words[0], Group: thing[0], Resource: thing[1], Subresource: thing[2]}
	if len(words) > 2 {
		a.Name = words[2]
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// WhoAmI returns the user name that a client has for the API server.
func WhoAmI(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}
