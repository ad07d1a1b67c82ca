// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Step is a part of the host's writes for a module.
type Step string

// The steps of a declared result, and those of the host itself.
const (
	StepApply           Step = "apply"
	StepPrune           Step = "prune"
	StepStatus          Step = "status"
	StepAddFinalizer    Step = "add finalizer"
	StepRemoveFinalizer Step = "remove finalizer"
	StepInspect         Step = "inspect"
)

// Reasons of a WriteError that the API server does not have.
const (
	ReasonFieldConflict     = "FieldConflict"     // another field manager owns a field
	ReasonForeignController = "ForeignController" // the child has another controller
	ReasonInvalidResult     = "InvalidResult"     // a child or the status cannot be applied as it was declared
	ReasonNoStatus          = "NoStatus"          // the kind has no status subresource
	ReasonLostRace          = "LostRace"          // another client changed or replaced the object in between
)

// FieldConflict is a field of a child that another field manager owns.
type FieldConflict struct {
	Manager string
	// Field is a path in the API server's form, for example ".spec.replicas".
	Field string
}

// WriteError is the error of a write that the host made for a module. errors.As finds an
// *abi.ResultError in it, which is the form for error_policy.
//
// Its class is permanent if only another result or another manifest would help. It is conflict if
// another client wrote first or owns a field, so that a run with newer objects may succeed. It is
// transient for everything else: a refusal of the API server may depend on RBAC, a quota, an
// admission policy, a CustomResourceDefinition or another object, and nothing reports that one of
// these has changed.
type WriteError struct {
	Step Step
	// Kind and Key identify the object. If the API server does not have the kind, Kind has only a
	// group, a version and a name.
	Kind kinds.Kind
	Key  abi.Key
	// Index is the position of a declared child, or -1.
	Index  int
	Class  abi.ErrorClass
	Reason string
	// After is the time at which the API server wants a retry, or zero.
	After time.Duration
	// Conflicts are the fields of other field managers, for FieldConflict.
	Conflicts []FieldConflict
	// Err is the cause.
	Err error

	// shown is the form of Err for a module that may not get the object. Otherwise, it is nil.
	shown error
}

// Error implements error.
func (e *WriteError) Error() string {
	kind := e.Kind.Kind
	if kind == "" {
		kind = e.Kind.Resource
	}
	what := strings.TrimSpace(kind + " " + e.Key.String())
	if e.Index >= 0 {
		what = strings.TrimSpace(fmt.Sprintf("%d %s", e.Index, what))
		return fmt.Sprintf("child[%s]: %s: %v", what, e.Step, e.Err)
	}
	return fmt.Sprintf("object[%s]: %s: %v", what, e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// As lets errors.As find an *abi.ResultError.
func (e *WriteError) As(target any) bool {
	result, ok := target.(**abi.ResultError)
	if ok {
		shown := *e
		shown.Err = cmp.Or(e.shown, e.Err)
		*result = &abi.ResultError{Class: e.Class, Message: shown.Error(), Reason: e.Reason, After: e.After}
	}
	return ok
}

// at sets the declared child of an error.
func (e *WriteError) at(index int) *WriteError {
	e.Index = index
	return e
}

// writeError classifies an error of a request, which may be nil.
func (a *API) writeError(ctx context.Context, step Step, r *request, err error) *WriteError {
	e := &WriteError{Step: step, Index: -1, Class: abi.ErrorTransient, Err: err}
	if r != nil {
		e.Kind, e.Key = r.kind, r.key
		if a.hides(r) {
			e.shown = concealed(err)
		}
	}
	if _, ok := errors.AsType[*foreignError](err); ok {
		e.Class, e.Reason = abi.ErrorConflict, ReasonForeignController
		return e
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		e.fromStatus(&status.ErrStatus)
		if _, lost := errors.AsType[*replacedError](err); lost {
			e.Reason = ReasonLostRace
		}
		return e
	}
	e.fromOther(ctx, err)
	return e
}

// permanentCodes are refusals that the same request would get again, whatever changes in the cluster.
// 400 and 422 are not among them: admission webhooks and policies use both, and 422 is also the answer
// to a port that another Service has, or to a value that an outdated schema does not allow.
var permanentCodes = []int32{
	http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

func (e *WriteError) fromStatus(status *metav1.Status) {
	e.Reason = string(status.Reason)
	if e.Reason == "" && status.Code == http.StatusInternalServerError {
		// It also matches an object whose schema is invalid for server-side apply, because this
		// error looks like other failures.
		e.Reason = string(metav1.StatusReasonInternalError)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(e.Err); ok {
		e.After = time.Duration(seconds) * time.Second
	}
	switch e.Conflicts = fieldConflicts(e.Err); {
	case len(e.Conflicts) > 0:
		e.Class, e.Reason = abi.ErrorConflict, ReasonFieldConflict
		e.Err = conflictError(e.Conflicts, e.Err)
	case status.Code == http.StatusConflict:
		e.Class = abi.ErrorConflict
	case slices.Contains(permanentCodes, status.Code):
		e.Class = abi.ErrorPermanent
	}
}

func (e *WriteError) fromOther(ctx context.Context, err error) {
	if own, ok := errors.AsType[*refusal](err); ok {
		e.Reason = reasons[own.status]
		if own.status == abi.StatusDenied || own.status == abi.StatusTooLarge {
			e.Class = abi.ErrorPermanent
		}
		return
	}
	if _, ok := errors.AsType[badRequest](err); ok {
		e.Class, e.Reason = abi.ErrorPermanent, ReasonInvalidResult
		return
	}
	if unknown, ok := errors.AsType[*kinds.UnknownError](err); ok {
		e.Reason = "UnknownKind"
		if !unknown.MayArrive {
			e.Class = abi.ErrorPermanent
		}
		return
	}
	e.Reason = reasons[abi.StatusUnavailable]
	if ctx.Err() != nil {
		e.Reason, e.Err = reasons[abi.StatusCancelled], context.Cause(ctx)
	}
}

// fieldConflicts returns the conflicts of a server-side apply, by manager.
func fieldConflicts(err error) []FieldConflict {
	var conflicts []FieldConflict
	for _, cause := range causes(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, FieldConflict{Manager: managerIn(cause.Message), Field: cause.Field})
		}
	}
	slices.SortStableFunc(conflicts, func(a, b FieldConflict) int { return strings.Compare(a.Manager, b.Manager) })
	return conflicts
}

// managerIn returns the manager in a cause: `conflict with "kubectl" using v1`. Otherwise it
// returns the whole text.
func managerIn(message string) string {
	_, rest, _ := strings.Cut(message, "conflict with ")
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		if manager, err := strconv.Unquote(quoted); err == nil {
			return manager
		}
	}
	return message
}

// conflictError describes the owners of the fields, and the remedy.
func conflictError(conflicts []FieldConflict, err error) error {
	var managers []string
	fields := map[string][]string{}
	for _, c := range conflicts {
		if fields[c.Manager] == nil {
			managers = append(managers, c.Manager)
		}
		fields[c.Manager] = append(fields[c.Manager], c.Field)
	}
	who := make([]string, len(managers))
	for i, m := range managers {
		who[i] = fmt.Sprintf("%q owns %s", m, strings.Join(fields[m], ", "))
	}
	return text.Replace(err, "field conflict: "+strings.Join(who, "; ")+": omit these fields, or take them over with force")
}
