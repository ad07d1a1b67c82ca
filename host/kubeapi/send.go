// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

var patchTypes = map[abi.PatchType]types.PatchType{
	abi.PatchJSON: types.JSONPatchType, abi.PatchMerge: types.MergePatchType, abi.PatchStrategic: types.StrategicMergePatchType,
}

// send carries out a request that was checked and allowed.
func (a *API) send(ctx context.Context, r *request) abi.Response {
	js, err := a.exchangeJudged(ctx, r)
	if err == nil && a.hides(r) {
		js, err = identify(js, r.DryRun)
	}
	if err != nil {
		return a.failed(ctx, r, err)
	}
	if r.op == abi.OpAPIList {
		return a.limits.checkList(fromJSONBy(r.transcoder(), r.ledger, js))
	}
	answer := fromJSONBy(r.transcoder(), r.ledger, js)
	if r.op == abi.OpAPIGet && answer.Status == abi.StatusOK {
		a.compare(r, versionIn(answer.Body).ResourceVersion)
	}
	return answer
}

// exchangeJudged is exchange for a request that confine has accepted. If the object has changed
// since the judgement, the write is judged again, a few times.
func (a *API) exchangeJudged(ctx context.Context, r *request) (js []byte, err error) {
	for range maxJudged {
		if js, err = a.exchange(ctx, r); err == nil || !r.lostPins(err) {
			return js, err
		}
		r.pins = pins{}
		if err := a.confine(ctx, r); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// carryOut sends a request and returns the JSON of the answer. A write does not wait, and is
// refused if the gate is closed. After the API server has accepted it, the run of ctx is notified.
// Errors are *refusal, *apierrors.StatusError, and errors of the connection.
func (a *API) carryOut(ctx context.Context, r *request) ([]byte, error) {
	if slices.Contains(opsRead, r.op) {
		return a.roundTrip(ctx, r)
	}
	if err := a.outlived(ctx, r); err != nil {
		return nil, err
	}
	if a.dry != DryRunNone {
		return a.rehearse(ctx, r)
	}
	open, done, err := enter(ctx, a.cfg.Gate)
	if err != nil {
		return nil, err
	}
	defer done()
	a.look(open, r)
	js, err := a.roundTrip(open, r)
	if err == nil {
		a.notify(ctx, r, js)
		return js, nil
	}
	if _, answered := errors.AsType[*apierrors.StatusError](err); !answered && errors.Is(context.Cause(open), errGateClosed) {
		return nil, &refusal{status: abi.StatusCancelled, message: errGateClosed.message + carriedOut}
	}
	return nil, err
}

// roundTrip sends a request once, and again under the conditions of Call.
func (a *API) roundTrip(ctx context.Context, r *request) ([]byte, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	h := a.httpRequest(r).SetHeader("Accept", r.accepts()).AbsPath(r.path()...).WarningHandlerWithContext(warnings{a})
	if body != nil {
		r.sent = body
		h = h.Body(body)
	}
	a.setParams(h, r)
	var contentType string
	var code int
	result, err := a.do(ctx, r, h)
	if err != nil {
		return nil, err
	}
	result.ContentType(&contentType).StatusCode(&code)
	r.created = code == http.StatusCreated
	if err := result.Error(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, errAnswerTooLarge
		}
		if own, ok := errors.AsType[*refusal](err); ok { // from answerBody
			return nil, own.after(r.op)
		}
		if r.Subresource == "" && isNoSuchResource(err) {
			a.cfg.Resolver.Expire()
		}
		return nil, r.asConflict(err)
	}
	js, _ := result.Raw() // result has the error too
	switch mediaType, _, err := mime.ParseMediaType(contentType); {
	case err == nil && mediaType == protobufType:
		if js, err = r.fromProtobuf(js); err != nil {
			r.onlyJSON = true
			return a.roundTrip(ctx, r)
		}
	case err != nil || mediaType != jsonType:
		return nil, &refusal{status: abi.StatusBadRequest, message: fmt.Sprintf("subresource: %s of %s answers with %q, but %s supports only objects",
			r.Subresource, r.kind.Kind, contentType, r.op)}
	}
	return js, nil
}

// do sends a request, and adds it to the cost of the run of ctx.
func (a *API) do(ctx context.Context, r *request, h *rest.Request) (rest.Result, error) {
	run, started := abi.RunFrom(ctx), time.Now()
	defer func() { run.Idled(time.Since(started)) }()
	done, err := a.limits.enter(ctx)
	if err != nil {
		return rest.Result{}, err
	}
	defer done()
	result := h.Do(&sending{ctx, r.ledger})
	if run != nil && run.Cost != nil {
		js, _ := result.Raw() // result has the error too
		run.Cost.Requests++
		run.Cost.Answers += int64(len(js))
	}
	return result, nil
}

func (a *API) httpRequest(r *request) *rest.Request {
	client := a.cfg.Client.rest
	switch r.op {
	case abi.OpAPICreate:
		return client.Post().SetHeader("Content-Type", "application/json")
	case abi.OpAPIUpdate:
		return client.Put().SetHeader("Content-Type", "application/json")
	case abi.OpAPIPatch:
		return client.Patch(patchTypes[r.PatchType])
	case abi.OpAPIApply:
		return client.Patch(types.ApplyYAMLPatchType) // JSON is valid YAML
	case abi.OpAPIDelete:
		return client.Delete().SetHeader("Content-Type", "application/json")
	default:
		return client.Get()
	}
}

// path returns the segments of the URL's path. Each was checked to be one segment.
func (r *request) path() []string {
	path := []string{"apis", r.kind.Group, r.kind.Version}
	if r.kind.Group == "" {
		path = []string{"api", r.kind.Version}
	}
	if r.key.Namespace != "" {
		path = append(path, "namespaces", r.key.Namespace)
	}
	path = append(path, r.kind.Resource)
	if r.key.Name != "" && (r.op != abi.OpAPICreate || r.Subresource != "") {
		path = append(path, r.key.Name)
	}
	if r.Subresource != "" {
		path = append(path, r.Subresource)
	}
	return path
}

// setParams sets the query. checkKeys has checked that only keys of the operation are set.
func (a *API) setParams(h *rest.Request, r *request) {
	params := map[string]string{
		"labelSelector": r.LabelSelector, "fieldSelector": r.FieldSelector, "continue": r.Continue,
		"resourceVersion": r.ResourceVersion, "resourceVersionMatch": r.ResourceVersionMatch,
		"fieldValidation": r.FieldValidation, "fieldManager": a.managerOf(r),
	}
	if limit := pageLimit(r); limit != 0 {
		params["limit"] = strconv.FormatInt(limit, 10)
	}
	if r.DryRun && r.op != abi.OpAPIDelete { // a deletion has it in its body
		params["dryRun"] = "All"
	}
	if r.op == abi.OpAPIApply {
		params["force"] = strconv.FormatBool(r.Force)
	}
	for key, value := range params {
		if value != "" {
			h.Param(key, value)
		}
	}
}

// managerOf returns the field manager of a write, or "" for a deletion.
func (a *API) managerOf(r *request) string {
	switch {
	case !slices.Contains(opsWrite, r.op):
		return ""
	case r.FieldManager != "":
		return r.FieldManager
	}
	return a.manager
}

// ownManager returns the field manager of a limited write. It belongs to the controller, so that no
// field of another manager changes its owner.
func (a *API) ownManager(name string) string {
	if name == "" || name == a.manager || strings.HasPrefix(name, a.manager+"/") {
		return name
	}
	return a.manager + "/" + name
}

// asConflict returns a conflict if the API server refused a UID that is not the object's. The API
// server itself does that for updates and deletions, but for patches it reports an invalid change
// of an immutable field.
func (r *request) asConflict(err error) error {
	if r.Preconditions == nil || r.Preconditions.UID == "" || !apierrors.IsInvalid(err) {
		return err
	}
	if !slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) {
		return err
	}
	return r.conflict("precondition failed: the object's uid is not %s", shorten(r.Preconditions.UID))
}
