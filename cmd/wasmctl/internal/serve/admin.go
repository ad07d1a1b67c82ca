// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Admin returns a service that adds the condition Ready of each Reconciler to the answers of its Runtime's
// service.
func (s *Server) Admin(of admin.Service) admin.Service { return service{of, s} }

// service implements admin.Service.
type service struct {
	admin.Service

	server *Server
}

// Status implements admin.Service.
func (s service) Status() admin.Status {
	st := s.Service.Status()
	st.Reconcilers = s.server.reconcilers()
	addTrouble(st.Controllers, st.Reconcilers)
	return st
}

// addTrouble replaces the state "ok" of the controllers whose Reconciler is not ready.
func addTrouble(controllers []admin.Controller, list []admin.Reconciler) {
	for i := range controllers {
		c := &controllers[i]
		at := slices.IndexFunc(list, func(r admin.Reconciler) bool { return r.Controller == c.Name && r.Trouble })
		if at >= 0 && c.State == admin.StateOK {
			c.State = notReady(&list[at])
		}
	}
}

// notReady describes why a Reconciler is not ready.
func notReady(r *admin.Reconciler) string {
	return strings.TrimSuffix(fmt.Sprintf("not ready: %s: %s", r.Reason, humanize.FirstLine(r.Message)), ": ")
}

// reconcilers returns the Reconcilers that this process has looked at, ordered by name.
func (s *Server) reconcilers() (list []admin.Reconciler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, u := range s.units {
		if r, ok := u.summary(of); ok {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b admin.Reconciler) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// summary returns the condition Ready of a unit. ok is false before its first status.
func (u *unit) summary(of id) (r admin.Reconciler, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := &u.ready
	if c.Type == "" {
		return r, false
	}
	return admin.Reconciler{
		Kind: of.kind, Name: of.String(), Controller: u.obj.controller(), Ready: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message,
		Since: c.LastTransitionTime.Time, Trouble: !slices.Contains(passing, c.Reason) && !slices.Contains(normal, c.Reason),
	}, true
}

// Explain implements admin.Service. The explanation of a Reconciler begins with the reason why it is not
// ready.
func (s service) Explain(ctx context.Context, q admin.Question) ([]admin.Explanation, error) {
	list, err := s.Service.Explain(ctx, q)
	for i := range list {
		e := &list[i]
		for _, r := range s.server.reconcilers() {
			if e.Controller == NativeName(r.Kind) && e.Object == r.Name && !r.Ready {
				e.State = cmp.Or(map[bool]string{true: "not ready"}[e.State == "idle" || e.State == "waiting"], e.State)
				e.Why = slices.Insert(e.Why, 0, notReady(&r))
			}
		}
	}
	return list, err
}

// NativeName returns the name of the controller that reconciles a kind of Reconcilers.
func NativeName(kind string) string { return "wasmctl-" + v1alpha1.GVR(kind).Resource }
