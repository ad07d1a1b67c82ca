// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// denied reports whether the service account lacks a right.
func (in *seen) denied() bool {
	if in.problem != nil {
		return in.problem.denied
	}
	c := in.controller
	return c != nil && (slices.ContainsFunc(c.MissingRights, func(r admin.MissingRight) bool { return r.Missing == "RBAC" }) || slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Phase == "denied" }))
}

// absentAccount returns a problem if the service account does not exist. The API server accepts requests in the name of
// such an account, and denies them like those of an account without rights. If the process may not read the account,
// absentAccount returns nil.
func (s *Server) absentAccount(ctx context.Context, o *reconciler) *problem {
	name := o.account(s.cfg.ServiceAccount)
	_, err := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(o.home()).Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	return &problem{
		condition: v1alpha1.Granted, reason: "ServiceAccountNotFound",
		message: fmt.Sprintf("serviceaccount[%s/%s] does not exist, so that each request is denied: create it and grant it the rights of the module (wasmctl rbac), or name another one in spec.serviceAccountName", o.home(), name),
	}
}
