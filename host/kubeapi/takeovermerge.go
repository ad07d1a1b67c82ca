// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// takeover moves fields from entries of managedFields to the applied entry of a manager. It is pure.
type takeover struct {
	// applies is the entry of the manager's applies, in this version of the kind.
	applies fieldManager
	version string
	// owner is the UID of the controller of the children.
	owner string
	// former reports whether an entry is to be taken over. The fields of the module's own calls are
	// taken over only if some of them are applied too, or if the apply was refused because of them:
	// otherwise the module writes other fields with calls, on purpose. The entries of the listed managers
	// are always taken over.
	former  func(fieldManager) bool
	listed  []string
	refused bool

	// merged are the new entries, and taken are the fields that were moved from the entries of the
	// managers in from.
	merged []metav1.ManagedFieldsEntry
	taken  *fieldpath.Set
	from   []string
}

// merge sets merged, taken and from. It does not change entries.
func (t *takeover) merge(entries []metav1.ManagedFieldsEntry) error {
	t.merged, t.taken, t.from = slices.Clone(entries), fieldpath.NewSet(), nil
	place := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return entryManager(&e) == t.applies })
	if place < 0 {
		place = len(t.merged)
		t.merged = append(t.merged, metav1.ManagedFieldsEntry{
			Manager: t.applies.Manager, Operation: t.applies.Operation, Subresource: t.applies.Subresource, APIVersion: t.version, FieldsType: "FieldsV1",
		})
	}
	applied, err := fieldsOf(&t.merged[place])
	if err != nil {
		return err
	}
	for i := range t.merged {
		if e := &t.merged[i]; i != place && e.APIVersion == t.merged[place].APIVersion && t.former(entryManager(e)) {
			if err := t.take(e, applied); err != nil {
				return err
			}
		}
	}
	if err := setFields(&t.merged[place], applied.Union(t.taken)); err != nil {
		return err
	}
	t.merged = slices.DeleteFunc(t.merged, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1 == nil })
	return nil
}

// take moves the fields of an entry, and clears the entry if none are left.
func (t *takeover) take(e *metav1.ManagedFieldsEntry, applied *fieldpath.Set) error {
	all, err := fieldsOf(e)
	if err != nil {
		return err
	}
	taken := fieldpath.NewSet()
	for p := range all.All() {
		if !t.stays(p) {
			taken.Insert(p.Copy())
		}
	}
	shared := !taken.Intersection(applied).Empty()
	if taken.Empty() || !shared && !t.refused && !slices.Contains(t.listed, e.Manager) {
		return nil
	}
	t.taken = t.taken.Union(taken)
	if !slices.Contains(t.from, e.Manager) { // it may have an entry of updates and one of applies
		t.from = append(t.from, e.Manager)
	}
	rest := all.Difference(taken)
	if rest.Empty() {
		e.FieldsV1 = nil
		return nil
	}
	return setFields(e, rest)
}

// stays reports whether a field is never taken over, so that it stays even if it is not declared: a
// finalizer, whose owner must do its work first, and a reference to another owner.
func (t *takeover) stays(p fieldpath.Path) bool {
	name := func(i int) string {
		if i < len(p) && p[i].FieldName != nil {
			return *p[i].FieldName
		}
		return ""
	}
	switch {
	case name(0) != "metadata":
		return false
	case name(1) == "ownerReferences" && len(p) > 2 && p[2].Key != nil:
		return !slices.ContainsFunc(*p[2].Key, func(f value.Field) bool {
			return f.Name == "uid" && f.Value.IsString() && f.Value.AsString() == t.owner
		})
	}
	return name(1) == "finalizers"
}

func entryManager(e *metav1.ManagedFieldsEntry) fieldManager {
	return fieldManager{e.Manager, e.Operation, e.Subresource}
}

func fieldsOf(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("managedFields[%s]: %w", e.Manager, err)
	}
	return set, nil
}

func setFields(e *metav1.ManagedFieldsEntry, fields *fieldpath.Set) error {
	encoded, err := fields.ToJSON()
	if err != nil {
		return fmt.Errorf("managedFields[%s]: %w", e.Manager, err)
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(encoded))
	return nil
}
