// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// inUse are the groups of requests that a process sends, in addition to those of the objects of an installation.
var inUse = []string{"authorization.k8s.io/v1", "coordination.k8s.io/v1", "events.k8s.io/v1"}

// maxAnswer bounds the answer to a request for the version.
const maxAnswer = 1 << 20

// Cluster checks whether the objects of an installation can be created in a cluster, and work there. An error means that the API
// server does not answer.
func Cluster(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) ([]Finding, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := server(ctx, config)
	if err != nil {
		return nil, err
	}
	list, err := client.Discovery().ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var have []string
	for i := range list.Groups {
		for _, v := range list.Groups[i].Versions {
			have = append(have, v.GroupVersion)
		}
	}
	want := slices.Clone(inUse)
	for _, o := range objects {
		want = append(want, o.GetAPIVersion())
	}
	slices.Sort(want)
	found = append(found, groups(slices.Compact(want), have))
	may, err := mayInstall(ctx, client, objects)
	if err != nil {
		return nil, err
	}
	found = append(found, may)
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		have, err := resources.Resource(gvr).Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			have = &unstructured.Unstructured{}
		case err != nil:
			found = append(found, Finding{"CRD " + o.GetName(), Warn, "cannot be read: " + err.Error()})
			continue
		}
		found = append(found, crd(o.GetName(), have.Object, o.Object))
	}
	return found, nil
}

// server checks the version and the clock of the API server.
func server(ctx context.Context, config *rest.Config) ([]Finding, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return nil, err
	}
	before := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	after := time.Now()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("version: %w", apierrors.NewGenericServerResponse(answer.StatusCode, "get", schema.GroupResource{Resource: "version"}, "", answer.Status, 0, true))
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	date, _ := http.ParseTime(answer.Header.Get("Date")) // zero if there is none
	return []Finding{serverVersion(info.GitVersion), clock(before, date, after)}, nil
}

// mayInstall checks the rights of the user.
func mayInstall(ctx context.Context, client kubernetes.Interface, objects []*unstructured.Unstructured) (Finding, error) {
	may := func(a authorizationv1.ResourceAttributes) (bool, error) {
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("selfsubjectaccessreview: %w", err)
		}
		return review.Status.Allowed, nil
	}
	admin, err := may(authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"})
	if err != nil || admin {
		return rights(nil, admin), err
	}
	var missing []string
	for _, o := range objects {
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		for _, verb := range []string{"create", "patch"} {
			ok, err := may(authorizationv1.ResourceAttributes{Group: gvr.Group, Resource: gvr.Resource, Namespace: o.GetNamespace(), Name: o.GetName(), Verb: verb})
			if err != nil {
				return Finding{}, err
			}
			if name := gvr.GroupResource().String(); !ok && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	escalate, err := may(authorizationv1.ResourceAttributes{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verb: "escalate"})
	return rights(missing, escalate), err
}
