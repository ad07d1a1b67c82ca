// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/wasmctl/wasmctl/abi"
)

// MaxFields is the maximum number of changed fields per object.
const MaxFields = 16

// Field is a field that a write changed. It does not include the value, which may be a secret.
type Field struct {
	// Object is the written object, such as "deployments.apps default/web".
	Object string
	// Path is the field in the notation of field managers, such as `.spec.containers[name="app"].image`.
	Path string
	// Managers are the field managers that own the field before or after the write.
	Managers []string

	before, after uint64 // hashes of the value; 0 if absent
}

// String returns the field as it is logged.
func (f Field) String() string {
	if len(f.Managers) == 0 {
		return f.Object + " " + f.Path
	}
	return f.Object + " " + f.Path + " (" + strings.Join(f.Managers, ", ") + ")"
}

// changedBack reports whether a field was changed by another writer between two runs that both changed it.
func changedBack(last, this []Field) bool {
	return slices.ContainsFunc(this, func(f Field) bool {
		return slices.ContainsFunc(last, func(g Field) bool {
			return f.Object == g.Object && f.Path == g.Path && f.before != g.after
		})
	})
}

// ObjectName returns the name of the written object, such as "deployments.apps default/web".
func ObjectName(w *abi.Write) string {
	return schema.GroupResource{Group: w.Group, Resource: w.Resource}.String() + " " + w.Key.String()
}

// Compare returns the fields that differ between two JSON states of an object, before and after a write, with their managers. It ignores
// fields that every write changes: managedFields, resourceVersion and generation. It returns at most MaxFields.
func Compare(w *abi.Write, before, after []byte) ([]Field, error) {
	d := differ{object: ObjectName(w)}
	old, err := d.read(before)
	if err != nil {
		return nil, fmt.Errorf("%s: before the write: %w", d.object, err)
	}
	now, err := d.read(after)
	if err != nil {
		return nil, fmt.Errorf("%s: after the write: %w", d.object, err)
	}
	hint := fieldpath.NewSet()
	for _, m := range d.managers {
		hint = hint.Union(m.fields)
	}
	d.walk(nil, old, now, hint)
	return d.fields, nil
}

// differ compares two states of an object.
type differ struct {
	object   string
	managers []manager
	fields   []Field
}

type manager struct {
	name   string
	fields *fieldpath.Set
}

// read decodes an object, and removes the fields that every write changes.
func (d *differ) read(object []byte) (map[string]any, error) {
	var m map[string]any
	if err := utiljson.Unmarshal(object, &m); err != nil {
		return nil, err
	}
	var head struct {
		Metadata struct {
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, err
	}
	for _, e := range head.Metadata.ManagedFields {
		set := fieldpath.NewSet()
		if e.FieldsV1 == nil || set.FromJSON(e.FieldsV1.GetRawReader()) != nil {
			continue // an unknown format: the fields of this manager are unknown
		}
		d.managers = append(d.managers, manager{e.Manager, set})
	}
	if meta, ok := m["metadata"].(map[string]any); ok {
		for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(meta, name)
		}
	}
	return m, nil
}

// walk compares two values. hint is the set of managed fields below path; it distinguishes lists that are compared by key from lists that
// are a single value.
func (d *differ) walk(path fieldpath.Path, old, now any, hint *fieldpath.Set) {
	if len(d.fields) >= MaxFields || reflect.DeepEqual(old, now) {
		return
	}
	oldMap, ok1 := old.(map[string]any)
	nowMap, ok2 := now.(map[string]any)
	if ok1 && ok2 {
		names := slices.AppendSeq(slices.Collect(maps.Keys(oldMap)), maps.Keys(nowMap))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			d.step(path, fieldpath.FieldNameElement(name), oldMap[name], nowMap[name], hint)
		}
		return
	}
	oldList, ok1 := old.([]any)
	nowList, ok2 := now.([]any)
	if names := listKeys(hint); ok1 && ok2 && len(names) > 0 {
		d.walkList(path, byKey(oldList, names), byKey(nowList, names), hint)
		return
	}
	d.fields = append(d.fields, Field{
		Object: d.object, Path: path.String(), Managers: d.managersOf(path), before: hashOf(old), after: hashOf(now),
	})
}

func (d *differ) walkList(path fieldpath.Path, old, now []item, hint *fieldpath.Set) {
	for _, o := range old {
		at := slices.IndexFunc(now, func(n item) bool { return n.key.Equals(o.key) })
		if at < 0 {
			d.step(path, o.key, o.value, nil, hint)
			continue
		}
		d.step(path, o.key, o.value, now[at].value, hint)
	}
	for _, n := range now {
		if !slices.ContainsFunc(old, func(o item) bool { return n.key.Equals(o.key) }) {
			d.step(path, n.key, nil, n.value, hint)
		}
	}
}

// step compares one part below path.
func (d *differ) step(path fieldpath.Path, part fieldpath.PathElement, old, now any, hint *fieldpath.Set) {
	below, ok := hint.Children.Get(part)
	if !ok {
		below = fieldpath.NewSet()
	}
	d.walk(append(slices.Clip(path), part), old, now, below)
}

// managersOf returns the managers that own the field, something below it, or the atomic value that contains it.
func (d *differ) managersOf(path fieldpath.Path) []string {
	var names []string
	for _, m := range d.managers {
		if owns(m.fields, path) && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	slices.Sort(names)
	return names
}

func owns(set *fieldpath.Set, path fieldpath.Path) bool {
	for i, part := range path {
		below, ok := set.Children.Get(part)
		if !ok {
			return set.Members.Has(part) && (i == len(path)-1 || part.Key == nil)
		}
		set = below
	}
	return true
}

// item is an element of a list that is compared by key.
type item struct {
	key   fieldpath.PathElement
	value any
}

// listKeys returns the names of the key fields of a list if managers own its elements individually.
func listKeys(hint *fieldpath.Set) []string {
	var names []string
	find := func(e fieldpath.PathElement) {
		if e.Key == nil || names != nil {
			return
		}
		for _, f := range *e.Key {
			names = append(names, f.Name)
		}
	}
	hint.Members.Iterate(find)
	hint.Children.Iterate(find)
	return names
}

func byKey(list []any, names []string) []item {
	items := make([]item, 0, len(list))
	for i, v := range list {
		m, _ := v.(map[string]any)
		fields := make(value.FieldList, 0, len(names))
		for _, name := range names {
			if part, ok := m[name]; ok {
				fields = append(fields, value.Field{Name: name, Value: value.NewValueInterface(part)})
			}
		}
		key := fieldpath.KeyElement(fields...)
		if len(fields) == 0 {
			key = fieldpath.IndexElement(i)
		}
		items = append(items, item{key, v})
	}
	return items
}

// hashOf returns a hash of a value, or 0 if it is absent.
func hashOf(v any) uint64 {
	if v == nil {
		return 0
	}
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(v) // the value was decoded from JSON, and writing to a hash cannot fail
	return h.Sum64() | 1
}
