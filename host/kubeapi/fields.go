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
	// maxMissing bounds how many fields a refusal names.
	maxMissing = 20
	// maxJudged bounds how often a write is judged whose object keeps changing.
	maxJudged = 4
)

// errRaced says that an object has changed while a write of it was judged.
var errRaced = errors.New("the object has changed since it was read")

// confine keeps a write within what the policy limits beyond its verb: fields,
// and an apply or an update that may not create. It costs nothing where nothing
// is limited. Else the write is judged on what is there, and then holds for that
// only; see docs/capabilities.md. Errors are a refusal, and what the API server
// answers where it has to be asked.
func (a *API) confine(ctx context.Context, r *request) error {
	if a.policy.all || !slices.Contains(opsWrite, r.op) {
		return nil
	}
	j := a.policy.judgement(r)
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
	return apierrors.NewConflict(r.kind.GVR().GroupResource(), r.key.Name, errRaced)
}

// judgement is what the policy says of one write.
type judgement struct {
	at Attributes
	// fields limit the write, nil for no limit.
	fields *fieldpath.Set
	// creates says that the write may make an object that is not there. Then
	// mayCreate is whether the policy allows it, with which fields.
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

// needed reports whether the write must be judged. A uid is only ever that of an
// object that is there; a resourceVersion does not keep the API server from
// creating.
func (j *judgement) needed(r *request) bool {
	if j.fields != nil {
		return !r.touchesStatusOnly(j.fields)
	}
	return j.creates && (!j.mayCreate || j.created != nil) && r.wantedUID() == ""
}

// judge judges a write on what is there, and pins it to that.
func (a *API) judge(ctx context.Context, r *request, j *judgement) error {
	if err := r.unpackBody(); err != nil {
		return err
	}
	defer r.ledger.rewind(r.ledger.mark()) // what it is judged on is not kept
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

// judgeAbsent judges a write of an object that is not there: only an apply makes
// one, and only one that is new.
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

// tryOut asks the API server what a write would change, and pins it to the
// version that it was tried on.
func (a *API) tryOut(ctx context.Context, r *request, j *judgement, before *prior) error {
	limited := j.fields != nil
	if limited && r.patchesManagers(before.object) {
		return a.denyManagers(ctx, r, j)
	}
	dry := *r
	dry.DryRun, dry.pins = true, pins{keepManagers: limited}
	js, err := a.roundTrip(ctx, &dry)
	if err != nil {
		return err
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

// checkLimited refuses what cannot be limited to fields: another version of the
// kind, in which the same names mean something else; and writes whose verdict alone
// tells what is there, without the right to get it.
func (a *API) checkLimited(ctx context.Context, r *request, j *judgement) error {
	if j.fields == nil && j.created == nil {
		return nil
	}
	preferred, err := a.resolver.ResolveGVK(ctx, schema.GroupVersionKind{Group: r.kind.Group, Kind: r.kind.Kind})
	if err != nil {
		return err
	}
	if preferred.Version != r.kind.Version && (r.Subresource != subresourceStatus || !coversAll(j.fields, theStatus)) {
		rule := a.policy.Missing(j.at)
		denied := &refusal{status: abi.StatusDenied, rule: &rule, where: inBoth}
		denied.message = "the module may " + j.at.Verb + " only some fields of " + resourceName(r.kind.Group, r.kind.Resource, r.Subresource) +
			", in the version that these are named in: use " + preferred.GVK().GroupVersion().String()
		a.deny(ctx, r, denied)
		return denied
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

// denyManagers refuses a limited write that would say who owns which field.
func (a *API) denyManagers(ctx context.Context, r *request, j *judgement) error {
	rule := a.policy.Missing(j.at)
	denied := &refusal{status: abi.StatusDenied, rule: &rule, where: inBoth}
	denied.message = "the module may " + j.at.Verb + " only some fields of " + resourceName(r.kind.Group, r.kind.Resource, r.Subresource) +
		", and so not change metadata.managedFields"
	a.deny(ctx, r, denied)
	return denied
}

// within refuses a write where some fields are not among the allowed ones.
func (a *API) within(ctx context.Context, r *request, at Attributes, limits *fieldpath.Set, fields fieldpath.Fields) error {
	missing, _ := limits.Missing(r.others(fields), maxMissing)
	if len(missing) == 0 {
		return nil
	}
	denied := a.policy.deniedFields(at, missing)
	a.deny(ctx, r, denied)
	return denied
}

// sets returns the fields that the text of a write names: for an apply and a
// merge patch these are touched even if they stay as they are. What else a write
// changes is known by trying it.
func (r *request) sets() fieldpath.Fields {
	switch {
	case r.op == abi.OpAPICreate:
		return fieldpath.Changed(nil, r.object)
	case r.kind.Subresources[r.Subresource].Kind == kindScale: // it has one field, which changes hands by any write
		return fieldpath.Fields(slices.Values([]fieldpath.Path{scaled}))
	case r.op == abi.OpAPIApply:
		return fieldpath.Touched(r.object)
	case r.op == abi.OpAPIPatch && r.PatchType == abi.PatchMerge:
		patch, _ := r.patch.(map[string]any)
		return fieldpath.Merged(patch)
	}
	return fieldpath.Touched(nil)
}

// unpackBody makes an object of a body that was encoded by the host.
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

// identity is what metadata has that says which object is meant, and that no
// write changes.
var identity = []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"}

// others leaves out the fields that need no right: those that say which object is
// meant, an empty status where the API server ignores it, and the owner reference
// that the host adds to a child.
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
