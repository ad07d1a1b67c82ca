package kubeapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// maxMissing bounds how many fields a refusal names.
const maxMissing = 20

// checkFields makes sure that a write touches no fields but those that the
// policy limits it to, as docs/capabilities.md says. Errors are a refusal, and
// what the API server answers where it has to be asked: an update is compared
// with what is there; a patch, and an apply whose fields lie in items of lists or
// that is sent under another's name, is tried with dryRun=All. Such a write then
// holds for the version that was looked at only.
func (a *API) checkFields(ctx context.Context, r *request, verbs ...string) error {
	if !a.policy.narrow {
		return nil
	}
	at := r.attributes()
	for _, at.Verb = range verbs {
		limits := a.policy.limits(&at)
		if limits == nil {
			continue
		}
		if err := r.unpackBody(); err != nil {
			return err
		}
		missing, err := a.outside(ctx, r, limits)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			denied := a.policy.deniedFields(at, missing)
			a.deny(ctx, r, denied)
			return denied
		}
	}
	return nil
}

// unpackBody makes an object of a body that was encoded by the host.
func (r *request) unpackBody() error {
	if r.encoded == nil {
		return nil
	}
	var err error
	r.object, err = parseObject(r.encoded)
	r.encoded = nil
	return err
}

// outside returns the fields that a write touches beyond its limits.
func (a *API) outside(ctx context.Context, r *request, limits *fieldpath.Set) ([]fieldpath.Path, error) {
	switch {
	case r.op == abi.OpAPICreate:
		missing, _ := limits.Missing(r.others(fieldpath.Changed(nil, r.object)), maxMissing)
		return missing, nil
	case r.op == abi.OpAPIUpdate:
		return a.outsideUpdate(ctx, r, limits)
	case r.op == abi.OpAPIApply:
		missing, byItem := limits.Missing(r.others(fieldpath.Touched(r.object)), maxMissing)
		if len(missing) > 0 || !byItem && a.managerOf(r) == a.manager {
			return missing, nil
		}
	case r.PatchType == abi.PatchMerge:
		patch, _ := r.patch.(map[string]any)
		missing, _ := limits.Missing(r.others(fieldpath.Merged(patch)), maxMissing)
		return missing, nil
	case r.patchesManagers():
		return []fieldpath.Path{fieldpath.NewPath("metadata", "managedFields")}, nil
	}
	return a.tried(ctx, r, limits)
}

// outsideUpdate compares an update with what is there, and makes it hold for
// that only.
func (a *API) outsideUpdate(ctx context.Context, r *request, limits *fieldpath.Set) ([]fieldpath.Path, error) {
	before, err := a.prior(ctx, r)
	if err != nil {
		return nil, err
	}
	changed := fieldpath.Changed(before.object, r.object)
	if meta, _ := r.object["metadata"].(map[string]any); meta["managedFields"] == nil { // they stay as they are
		changed = changed.Without(isManagedFields)
	}
	missing, _ := limits.Missing(r.others(changed), maxMissing)
	if len(missing) > 0 {
		return missing, nil
	}
	return nil, r.pin(before)
}

// tried asks the API server what a write would change, and makes it hold for
// the version that it was tried on. A new object has nothing that could be
// changed beside what was sent.
func (a *API) tried(ctx context.Context, r *request, limits *fieldpath.Set) ([]fieldpath.Path, error) {
	before, err := a.prior(ctx, r)
	if err != nil || before.known && before.object == nil {
		return nil, err
	}
	dry := *r
	dry.DryRun = true
	js, err := a.roundTrip(ctx, &dry)
	if err != nil {
		return nil, err
	}
	after, err := parseObject(js)
	if err != nil {
		return nil, err
	}
	changed := fieldpath.Changed(before.object, after).Without(isManagedFields)
	missing, _ := limits.Missing(r.others(changed), maxMissing)
	if len(missing) > 0 {
		return missing, nil
	}
	return nil, r.pin(before)
}

// pin makes a write hold only for the version of an object that was read.
func (r *request) pin(before *prior) error {
	meta, _ := before.object["metadata"].(map[string]any)
	version, _ := meta["resourceVersion"].(string)
	if version == "" {
		return nil
	}
	if wanted, _ := r.object["metadata"].(map[string]any); wanted["resourceVersion"] != nil && wanted["resourceVersion"] != version {
		return apierrors.NewConflict(r.kind.GVR().GroupResource(), r.key.Name, errors.New("the object has changed since it was read"))
	}
	var p abi.Preconditions
	if r.Preconditions != nil {
		p = *r.Preconditions
	}
	if p.ResourceVersion != "" {
		return nil // the API server compares it
	}
	p.ResourceVersion = version
	r.Preconditions = &p
	return r.addPreconditions()
}

// patchesManagers reports whether a patch would change who owns which field.
func (r *request) patchesManagers() bool {
	switch patch := r.patch.(type) {
	case map[string]any:
		meta, _ := patch["metadata"].(map[string]any)
		return meta["managedFields"] != nil
	case []any:
		return slices.ContainsFunc(patch, func(op any) bool {
			o, _ := op.(map[string]any)
			path, _ := o["path"].(string)
			return o["op"] != "test" && (path == "" || path == "/metadata" || strings.HasPrefix(path, "/metadata/managedFields"))
		})
	}
	return false
}

// identity of an object, and what its metadata has that a write does not change.
var identity = append([]string{"name", "namespace", "generateName"}, slices.DeleteFunc(slices.Clone(systemFields), func(key string) bool { return key == "managedFields" })...)

var managedFields = fieldpath.NewPath("metadata", "managedFields")

func isManagedFields(p fieldpath.Path) bool { return p.Within(managedFields) }

// others leaves out the fields that need no right: those that say which object is
// meant, those that this write cannot change, and the owner reference that the
// host adds to a child.
func (r *request) others(fields fieldpath.Fields) fieldpath.Fields {
	return fields.Without(func(p fieldpath.Path) bool {
		switch p.KeyAt(0) {
		case "apiVersion", "kind":
			return true
		case "metadata":
			return slices.Contains(identity, p.KeyAt(1)) || r.owner != "" && p.KeyAt(1) == "ownerReferences" && p.ItemAt(2, "uid") == r.owner
		case subresourceStatus:
			if r.Subresource == "" && (r.op == abi.OpAPIUpdate || p.Len() == 1) {
				_, ok := r.kind.Subresources[subresourceStatus]
				return ok
			}
			return false
		default:
			return r.op == abi.OpAPIUpdate && r.Subresource == subresourceStatus
		}
	})
}
