// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// noted remembers whether the API server has refused a request because its user lacks a right. Admission
// plugins name neither the user nor the right in their refusals, so the returned error adds them.
func (a *API) noted(ctx context.Context, r *request, err error) error {
	if err == nil {
		a.refused.permit(r)
		return nil
	}
	why, ok := forbidden(err)
	if !ok {
		return err
	}
	rule := a.missingRight(ctx, r, why)
	if rule == nil {
		return err
	}
	if !strings.HasPrefix(why, toUser) {
		user := cmp.Or(a.cfg.Client.config.Impersonate.UserName, "the user of wasmctl")
		err = text.Replace(err, fmt.Sprintf("%v; %s may not %s: wasmctl rbac prints the rights that a module needs", err, user, describeRule(rule)))
	}
	denied := &refusal{message: err.Error(), rule: rule, where: inRBAC}
	if a.refused.add(denied, r, time.Now()) {
		a.cfg.Logger.Warn("the API server denied a request; further ones of this kind are only counted, see wasmctl status",
			"op", string(r.op), "object", a.cfg.Secrets.Text(r.key.String()), "error", a.cfg.Secrets.Text(denied.message))
	}
	return err
}

// toUser begins the reason of the API server's authorizer.
const toUser = `User "`

// forbidden returns the reason why the API server refused a request with 403. It is empty for the
// refusals of admission webhooks, which can have any text.
func forbidden(err error) (why string, ok bool) {
	status, isStatus := errors.AsType[*apierrors.StatusError](err)
	if !isStatus || status.ErrStatus.Code != http.StatusForbidden {
		return "", false
	}
	what, why, found := strings.Cut(status.ErrStatus.Message, " is forbidden: ")
	return why, found && strings.Count(what, " ") <= 1
}

// missingRight returns the right that a refused request needs, or nil if the reason is not a right but,
// for example, a quota. It knows the reasons of the authorizer, and those of the parts of Kubernetes that
// ask it for further rights.
func (a *API) missingRight(ctx context.Context, r *request, why string) *abi.Capability {
	at := r.attributes()
	var user, verb, resource, name string
	scan := func(format string, into ...any) bool {
		n, _ := fmt.Sscanf(why, format, into...)
		return n == len(into)
	}
	switch {
	case scan("User %q cannot %s resource %q in API group %q", &user, &at.Verb, &resource, &at.Group):
		at.Resource, at.Subresource, _ = strings.Cut(resource, "/")
	case strings.HasPrefix(why, "cannot set an ownerRef on a resource you can't delete"):
		at.Verb = VerbDelete
	case strings.HasPrefix(why, "cannot set blockOwnerDeletion"):
		return a.ownerRight(ctx, r)
	case scan("user not permitted to %s requests with signerName %q", &verb, &name), scan("user not permitted to %s for signerName %q", &verb, &name):
		return &abi.Capability{Group: "certificates.k8s.io", Resource: "signers", Verbs: []string{verb}, Names: []string{name}}
	case at.Group == rbacv1.GroupName && strings.Contains(why, "is attempting to grant RBAC permissions not currently held"):
		return grantRight(&at, r.sent)
	default:
		return nil
	}
	rule := a.cfg.Policy.Missing(at)
	return &rule
}

// ownerRight returns the right that makes an object block the deletion of its owners. It is nil if the
// owner is unknown.
func (a *API) ownerRight(ctx context.Context, r *request) *abi.Capability {
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.sent, &sent); err != nil {
		return nil // a JSON patch
	}
	i := slices.IndexFunc(sent.OwnerReferences, func(o metav1.OwnerReference) bool { return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion })
	if i < 0 {
		return nil
	}
	owner := sent.OwnerReferences[i]
	kind, err := a.cfg.Resolver.ResolveGVK(ctx, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if err != nil {
		return nil
	}
	at := Attributes{Verb: VerbUpdate, Group: kind.Group, Resource: kind.Resource, Subresource: "finalizers"}
	if kind.Namespaced {
		at.Namespace = r.key.Namespace
	}
	rule := a.cfg.Policy.Missing(at)
	return &rule
}

// grantRight returns the right to write a role with more rights than the user has, or to bind one.
func grantRight(at *Attributes, sent []byte) *abi.Capability {
	rule := &abi.Capability{Group: rbacv1.GroupName, Resource: at.Resource, Verbs: []string{"escalate"}}
	if at.Namespace != "" {
		rule.Namespaces = []string{at.Namespace}
	}
	if !strings.HasSuffix(at.Resource, "bindings") {
		return rule
	}
	var binding struct {
		RoleRef rbacv1.RoleRef `json:"roleRef"`
	}
	if err := json.Unmarshal(sent, &binding); err != nil || binding.RoleRef.Name == "" {
		return nil
	}
	rule.Resource, rule.Verbs, rule.Names = strings.ToLower(binding.RoleRef.Kind)+"s", []string{"bind"}, []string{binding.RoleRef.Name}
	return rule
}
