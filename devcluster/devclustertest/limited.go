// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
)

// ruleLimit is the time limit for a new rule to take effect.
const ruleLimit = 20 * time.Second

// Limited returns a client configuration for a new service account with exactly the permissions of the rules in the namespace, enforced by
// RBAC. Without rules, it has no permissions. Limited returns when the rules have taken effect.
func Limited(t testing.TB, c *devcluster.Cluster, namespace string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	a := newAccount(t, c, namespace)
	meta := metav1.ObjectMeta{Name: a.name, Namespace: namespace}
	if _, err := a.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("limited client: role: %v", err)
	}
	if _, err := a.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: a.subjects(), RoleRef: roleRef("Role", a.name),
	}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("limited client: role binding: %v", err)
	}
	return a.config(t, c, namespace, rules)
}

// LimitedClusterWide is like Limited, for the whole cluster: the rules apply in every namespace, to cluster-scoped objects and to
// non-resource URLs. The service account is in a Namespace of the test.
func LimitedClusterWide(t testing.TB, c *devcluster.Cluster, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	a := newAccount(t, c, Namespace(t, c))
	meta := metav1.ObjectMeta{Name: a.namespace + ":" + a.name} // cluster-wide, so the name must include the namespace
	roles, bindings := a.client.RbacV1().ClusterRoles(), a.client.RbacV1().ClusterRoleBindings()
	if _, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("limited client: cluster role: %v", err)
	}
	cleanup(t, c, func(ctx context.Context) error { return roles.Delete(ctx, meta.Name, metav1.DeleteOptions{}) })
	if _, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: a.subjects(), RoleRef: roleRef("ClusterRole", meta.Name),
	}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("limited client: cluster role binding: %v", err)
	}
	cleanup(t, c, func(ctx context.Context) error { return bindings.Delete(ctx, meta.Name, metav1.DeleteOptions{}) })
	return a.config(t, c, "", rules)
}

// account is a new service account.
type account struct {
	client          kubernetes.Interface // of an admin
	namespace, name string
}

func newAccount(t testing.TB, c *devcluster.Cluster, namespace string) account {
	t.Helper()
	client := clientset(t, c.RESTConfig())
	sa, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "limited-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("limited client: service account: %v", err)
	}
	return account{client: client, namespace: namespace, name: sa.Name}
}

func (a account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name}}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// config gets a token for the account and waits until it has the permissions of the rules: the API server learns of new roles through a
// watch.
func (a account) config(t testing.TB, c *devcluster.Cluster, namespace string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	token, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(t.Context(), a.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("limited client: token: %v", err)
	}
	rc := rest.AnonymousClientConfig(c.RESTConfig())
	rc.BearerToken = token.Status.Token
	client := clientset(t, rc)
	for _, rule := range rules {
		if err := awaitAllowed(t.Context(), client, reviewOf(rule, namespace)); err != nil {
			t.Fatalf("limited client: rule %v: %v", rule, err)
		}
	}
	return rc
}

// awaitAllowed returns when the client has the permission of the review.
func awaitAllowed(ctx context.Context, client kubernetes.Interface, spec authorizationv1.SelfSubjectAccessReviewSpec) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: spec}
	return poll(ctx, 10*time.Millisecond, ruleLimit, func(ctx context.Context) error {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("not in force: %s", answer.Status.Reason)
		}
		return nil
	})
}

// reviewOf returns a review of the first permission of the rule. The rules of a role take effect together, so one is enough.
func reviewOf(rule rbacv1.PolicyRule, namespace string) authorizationv1.SelfSubjectAccessReviewSpec {
	verb := first(rule.Verbs)
	if len(rule.NonResourceURLs) > 0 {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: rule.NonResourceURLs[0], Verb: verb,
		}}
	}
	resource, sub, _ := strings.Cut(first(rule.Resources), "/")
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: first(rule.APIGroups),
		Resource: resource, Subresource: sub, Name: first(rule.ResourceNames),
	}}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
