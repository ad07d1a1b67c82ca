// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// applyResult is the part of the answer to an apply that Declare needs.
type applyResult struct {
	Metadata struct {
		UID             string         `json:"uid"`
		ResourceVersion string         `json:"resourceVersion"`
		ManagedFields   []fieldManager `json:"managedFields"`
	} `json:"metadata"`
}

// fieldManager identifies an entry of managedFields.
type fieldManager struct {
	Manager     string                            `json:"manager"`
	Operation   metav1.ManagedFieldsOperationType `json:"operation"`
	Subresource string                            `json:"subresource"`
}

// applyDeclared sends the apply of a child or of a status, and returns its result.
//
// Server-side apply removes a field that is no longer declared only if no other entry of managedFields
// has it. Fields that the module has written with calls, and those of former managers, are in entries of
// their own. If a child has such entries, applyDeclared makes their fields part of the applied ones, and
// applies again. That needs no right beyond that to apply. first means that this process has not applied
// the request before: then it is first sent without force, because a forced apply takes single fields out
// of such an entry, after which the entry has nothing in common with the applied fields.
//
// The API server ignores managedFields in a status. A status only takes over the fields that it sets.
func (a *API) applyDeclared(ctx context.Context, o *owner, r *request, first bool) (made applyResult, err error) {
	force := r.Force
	r.Force = force && !first
	js, err := a.exchangeJudged(ctx, r)
	r.Force = force
	if err == nil {
		err = json.Unmarshal(js, &made)
	}
	conflicts := fieldConflicts(err)
	again, former := force && len(conflicts) > 0, slices.ContainsFunc(conflicts, a.isFormer)
	switch {
	case r.Subresource != "" || a.dry != DryRunNone:
		if former && !slices.ContainsFunc(conflicts, a.isOther) {
			r.Force, again = true, true
		}
	case former || err == nil && slices.ContainsFunc(made.Metadata.ManagedFields, a.takesFrom):
		taken, failed := a.takeOver(ctx, o, r, js)
		if failed != nil {
			return made, failed
		}
		again = again || taken
	}
	if !again {
		return made, err
	}
	made = applyResult{}
	if js, err = a.exchangeJudged(ctx, r); err == nil {
		err = json.Unmarshal(js, &made)
	}
	return made, err
}

// confineDeclared is confine for a child or a status. A limited apply is tried out, so it meets the
// conflicts of the apply.
func (a *API) confineDeclared(ctx context.Context, o *owner, r *request) error {
	err := a.confine(ctx, r)
	conflicts := fieldConflicts(err)
	switch {
	case !slices.ContainsFunc(conflicts, a.isFormer):
		return err
	case r.Subresource != "" || a.dry != DryRunNone:
		if slices.ContainsFunc(conflicts, a.isOther) {
			return err
		}
		r.Force = true
		return a.confine(ctx, r)
	}
	if taken, failed := a.takeOver(ctx, o, r, nil); failed != nil || !taken {
		return err
	}
	return a.confine(ctx, r)
}

// takesFrom reports whether the fields of an entry of managedFields are to be taken over.
func (a *API) takesFrom(m fieldManager) bool {
	own := m.Manager == a.manager && m.Operation == metav1.ManagedFieldsOperationUpdate
	return m.Subresource == "" && (own || m.Manager != a.manager && slices.Contains(a.cfg.FormerManagers, m.Manager))
}

func (a *API) isFormer(c FieldConflict) bool {
	return c.Manager == a.manager || slices.Contains(a.cfg.FormerManagers, c.Manager)
}

func (a *API) isOther(c FieldConflict) bool { return !a.isFormer(c) }

// takeOver makes the fields of former entries part of the applied fields of a child. js is the object in
// the answer to the apply, or nil if it was refused. taken is false if nothing has changed. The object of
// another controller is left alone, and so are fields that the module may not write.
func (a *API) takeOver(ctx context.Context, o *owner, r *request, js []byte) (taken bool, err error) {
	refused := js == nil
	if refused {
		if js, err = a.present(ctx, r); err != nil {
			return false, err
		}
	}
	var live metav1.PartialObjectMetadata
	if err := json.Unmarshal(js, &live); err != nil {
		return false, err
	}
	if controller := metav1.GetControllerOfNoCopy(&live); controller != nil && string(controller.UID) != o.uid {
		return false, nil
	}
	m := takeover{
		applies: fieldManager{a.manager, metav1.ManagedFieldsOperationApply, ""}, version: r.kind.GVK().GroupVersion().String(), owner: o.uid,
		former: a.takesFrom, listed: a.cfg.FormerManagers, refused: refused,
	}
	if err := m.merge(live.ManagedFields); err != nil || len(m.from) == 0 || !a.mayTake(r, js, &m) {
		return false, err
	}
	js, err = a.exchange(ctx, &request{
		op: abi.OpAPIPatch, kind: r.kind, key: r.key, ledger: r.ledger, takenFrom: m.from,
		APIRequest: abi.APIRequest{PatchType: abi.PatchJSON},
		patch: []any{
			test("/metadata/uid", string(live.UID)),
			operation("replace", "/metadata/managedFields", m.merged),
			operation("replace", "/metadata/resourceVersion", live.ResourceVersion), // 409 if the object has changed
		},
	})
	if err != nil {
		return false, err
	}
	var made applyResult
	if err := json.Unmarshal(js, &made); err != nil {
		return false, err
	}
	r.pins.takenOver(made.Metadata.ResourceVersion)
	for _, m := range m.from {
		a.logged.first(searched + m)
	}
	return true, nil
}

// searched is the beginning of the texts in API.logged that stand for former managers: for those that have
// been found, and those that a warning has named.
const searched = "former manager "

// missManagers warns of each former manager that an existing child does not have, unless another child had
// it: its name may be misspelled. A child that has only the fields of this controller needs no former ones.
func (a *API) missManagers(r *request, entries []fieldManager) {
	var others []string
	for _, e := range entries {
		if e.Subresource == "" && e.Manager != a.manager && !slices.Contains(others, e.Manager) {
			others = append(others, e.Manager)
		}
	}
	for _, m := range a.cfg.FormerManagers {
		if len(others) > 0 && m != a.manager && !slices.Contains(others, m) && a.logged.first(searched+m) {
			a.cfg.Logger.Warn("a declared child has no fields of this manager, which adoptManagers names: check the spelling, or remove the setting if they were taken over before",
				"manager", m, "kind", r.kind.Name(), "child", r.key.String(), "managers", others)
		}
	}
}

// present returns the object of an apply with the right to patch it: an empty patch, which is not carried
// out, returns it.
func (a *API) present(ctx context.Context, r *request) ([]byte, error) {
	return a.roundTrip(ctx, &request{
		op: abi.OpAPIPatch, kind: r.kind, key: r.key, ledger: r.ledger, patch: map[string]any{},
		APIRequest: abi.APIRequest{PatchType: abi.PatchMerge, DryRun: true},
	})
}

// mayTake reports whether the policy lets the module write all fields that it would take over, because
// the apply removes those that are not declared.
func (a *API) mayTake(r *request, js []byte, m *takeover) bool {
	limits := a.cfg.Policy.limits(new(r.attributes()))
	if limits == nil {
		return true
	}
	object, err := parseObject(js)
	if err != nil {
		return false
	}
	encoded, err := m.taken.ToJSON()
	if err != nil {
		return false
	}
	fields, err := parseObject(encoded)
	if err != nil {
		return false
	}
	missing, _ := limits.Missing(r.others(fieldpath.Owned(fields, object)), 1)
	return len(missing) == 0
}
