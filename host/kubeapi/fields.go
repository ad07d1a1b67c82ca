// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

const (
	// maxMissing is the maximum number of fields in a refusal.
	maxMissing = 20
	// maxJudged is the maximum number of times that a write is judged while its object changes.
	maxJudged = 4
)

// errRaced means that an object has changed while a write of it was judged.
var errRaced = errors.New("the object has changed since it was read")

// confine binds a write to the object that it is about, within the limits of the policy. Errors are a
// refusal, and errors of the API server if it has to be asked.
func (a *API) confine(ctx context.Context, r *request) error {
	if err := a.limit(ctx, r); err != nil {
		return err
	}
	return a.pinUID(ctx, r)
}

// limit enforces the limits of the policy beyond the verb: fields, and an apply or an update that may not
// create. It costs nothing without limits. Otherwise, the write is judged against the current object,
// and is then bound to that version. See docs/capabilities.md.
func (a *API) limit(ctx context.Context, r *request) error {
	if a.cfg.Policy.all || !slices.Contains(opsWrite, r.op) {
		return nil
	}
	j := a.cfg.Policy.judgement(r)
	if j.fields != nil {
		r.FieldManager = a.ownManager(r.FieldManager)
	}
	if !j.needed(r) {
		return nil
	}
	for range maxJudged {
		if err := a.judge(ctx, r, &j); !errors.Is(err, errRaced) {
			return err
		}
	}
	return r.conflict("%w", errRaced)
}

// judgement is the policy's decision about one write.
type judgement struct {
	at Attributes
	// fields limit the write. If nil, there is no limit.
	fields *fieldpath.Set
	// creates reports whether the write may create the object. Then mayCreate reports whether the
	// policy allows that, and with which fields.
	creates, mayCreate bool
	created            *fieldpath.Set
}

func (p *Policy) judgement(r *request) judgement {
	j := judgement{at: r.attributes()}
	j.fields = p.limits(&j.at)
	if j.creates = (r.op == abi.OpAPIApply || r.op == abi.OpAPIUpdate) && (r.Subresource == "" || r.kind.BuiltIn()); !j.creates {
		return j // even the status of some built-in kinds creates the object
	}
	create := j.at
	create.Verb, create.Subresource = VerbCreate, ""
	if j.mayCreate = p.Allows(create); j.mayCreate {
		j.created = p.limits(&create)
	}
	return j
}

// needed reports whether the write must be judged. A write with a UID is always about an existing
// object. A resourceVersion does not prevent the API server from creating one.
func (j *judgement) needed(r *request) bool {
	if j.fields != nil {
		return !r.touchesStatusOnly(j.fields)
	}
	return j.creates && (!j.mayCreate || j.created != nil) && r.wantedUID() == ""
}

// judge judges a write against the current object, and binds it to that version.
func (a *API) judge(ctx context.Context, r *request, j *judgement) error {
	if err := r.unpackBody(); err != nil {
		return err
	}
	defer r.ledger.rewind(r.ledger.mark()) // the memory for the judgement is released
	if err := a.checkLimited(ctx, r, j); err != nil {
		return err
	}
	if j.fields != nil {
		if err := a.within(ctx, r, j.at, j.fields, r.sets()); err != nil || r.op == abi.OpAPICreate {
			return err
		}
	}
	before, err := a.prior(ctx, r)
	switch {
	case err != nil:
		return err
	case before.known && before.object == nil:
		return a.judgeAbsent(ctx, r, j)
	case before.known && j.fields == nil:
		r.pins = pins{uid: versionOf(before.object).UID}
		return nil
	}
	return a.tryOut(ctx, r, j, before)
}

// judgeAbsent judges a write of a missing object. Only an apply creates one, and only if it is
// still missing.
func (a *API) judgeAbsent(ctx context.Context, r *request, j *judgement) error {
	switch {
	case r.op != abi.OpAPIApply || r.Subresource != "":
		return apierrors.NewNotFound(r.kind.GVR().GroupResource(), r.key.Name)
	case !j.mayCreate:
		if denied := a.check(ctx, r, VerbCreate); denied != nil {
			return denied
		}
	case j.created != nil:
		at := j.at
		at.Verb = VerbCreate
		if err := a.within(ctx, r, at, j.created, fieldpath.Changed(nil, r.object)); err != nil {
			return err
		}
	}
	r.pins = pins{version: neverVersion}
	return nil
}

// tryOut asks the API server for the changes of a write, and binds it to the version on which it
// was tried.
func (a *API) tryOut(ctx context.Context, r *request, j *judgement, before *prior) error {
	limited := j.fields != nil
	if limited && r.patchesManagers(before.object) {
		return a.denyLimited(ctx, r, j, "and so not change metadata.managedFields")
	}
	dry := *r
	dry.DryRun, dry.pins = true, pins{keepManagers: limited}
	js, err := a.roundTrip(ctx, &dry)
	if err != nil {
		return a.noted(ctx, &dry, err)
	}
	after, err := r.parseObject(js)
	if err != nil {
		return err
	}
	at := versionOf(after)
	switch {
	case dry.created:
		return a.judgeAbsent(ctx, r, j)
	case before.known && at != versionOf(before.object):
		return errRaced
	case !limited:
		r.pins = pins{uid: at.UID}
		return nil
	}
	changed := fieldpath.Changed(before.object, after).Without(isManagedFields)
	if err := a.within(ctx, r, j.at, j.fields, changed); err != nil {
		return err
	}
	if r.op == abi.OpAPIApply {
		if err := a.within(ctx, r, j.at, j.fields, a.gained(r, before.object, after)); err != nil {
			return err
		}
	}
	r.pins = pins{uid: at.UID, version: at.ResourceVersion, keepManagers: true}
	return nil
}

// checkLimited refuses writes that cannot be limited to fields: those of another version of the
// kind, in which the same names can have another meaning, and those whose result reveals the
// object, if the module may not get it.
func (a *API) checkLimited(ctx context.Context, r *request, j *judgement) error {
	if j.fields == nil && j.created == nil {
		return nil
	}
	preferred, err := a.cfg.Resolver.ResolveGVK(ctx, schema.GroupVersionKind{Group: r.kind.Group, Kind: r.kind.Kind})
	if err != nil {
		return err
	}
	if preferred.Version != r.kind.Version && (r.Subresource != subresourceStatus || !coversAll(j.fields, theStatus)) {
		return a.denyLimited(ctx, r, j, "in the version that these are named in: use "+preferred.GVK().GroupVersion().String())
	}
	if j.fields == nil {
		return nil
	}
	if (r.op == abi.OpAPIUpdate || r.PatchType == abi.PatchStrategic) && !a.mayGet(r) {
		if denied := a.check(ctx, r, VerbGet); denied != nil {
			return denied
		}
	}
	return nil
}

// denyLimited refuses a write that cannot be limited to fields.
func (a *API) denyLimited(ctx context.Context, r *request, j *judgement, why string) error {
	rule := a.cfg.Policy.Missing(j.at)
	denied := &refusal{status: abi.StatusDenied, rule: &rule, where: inBoth}
	denied.message = "the module may " + j.at.Verb + " only some fields of " + resourceName(r.kind.Group, r.kind.Resource, r.Subresource) +
		", " + why
	a.deny(ctx, r, denied)
	return denied
}

// within refuses a write if some of its fields are not allowed.
func (a *API) within(ctx context.Context, r *request, at Attributes, limits *fieldpath.Set, fields fieldpath.Fields) error {
	missing, _ := limits.Missing(r.others(fields), maxMissing)
	if len(missing) == 0 {
		return nil
	}
	denied := a.cfg.Policy.deniedFields(at, missing)
	a.deny(ctx, r, denied)
	return denied
}

// sets returns the fields in the text of a write. An apply and a merge patch touch them even if
// they stay the same. Other changes of a write are found by trying it.
func (r *request) sets() fieldpath.Fields {
	switch {
	case r.op == abi.OpAPICreate:
		return fieldpath.Changed(nil, r.object)
	case r.kind.Subresources[r.Subresource].Kind == kindScale: // it has one field, whose owner any write changes
		return fieldpath.Fields(slices.Values([]fieldpath.Path{scaled}))
	case r.op == abi.OpAPIApply:
		return fieldpath.Touched(r.object)
	case r.op == abi.OpAPIPatch && r.PatchType == abi.PatchMerge:
		patch, _ := r.patch.(map[string]any)
		return fieldpath.Merged(patch)
	}
	return fieldpath.Touched(nil)
}

// unpackBody returns the object of a body that the host has encoded.
func (r *request) unpackBody() error {
	if r.encoded == nil {
		return nil
	}
	var err error
	r.object, err = r.parseObject(r.encoded)
	r.encoded = nil
	return err
}

var (
	managedFields = fieldpath.NewPath("metadata", "managedFields")
	scaled        = fieldpath.NewPath("spec", "replicas")
	theStatus     = fieldpath.NewPath(subresourceStatus)
)

func isManagedFields(p fieldpath.Path) bool { return p.Within(managedFields) }

func coversAll(s *fieldpath.Set, p fieldpath.Path) bool {
	if s == nil {
		return true
	}
	covers, _ := s.Covers(p)
	return covers
}

// identity are the fields of metadata that identify the object, and that no write changes.
var identity = []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"}

// others omits the fields that need no right: those that identify the object, an empty status that
// the API server ignores, and the owner reference that the host adds to a child.
func (r *request) others(fields fieldpath.Fields) fieldpath.Fields {
	return fields.Without(func(p fieldpath.Path) bool {
		switch p.KeyAt(0) {
		case "apiVersion", "kind":
			return p.Len() == 1
		case "metadata":
			key := p.KeyAt(1)
			return slices.Contains(identity, key) || key == "generateName" && r.op == abi.OpAPICreate ||
				r.owner != "" && key == "ownerReferences" && p.ItemAt(2, "uid") == r.owner
		case subresourceStatus:
			_, ok := r.kind.Subresources[subresourceStatus]
			return ok && p.Len() == 1 && r.Subresource == ""
		}
		return false
	})
}
