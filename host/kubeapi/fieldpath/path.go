// SPDX-License-Identifier: Apache-2.0

// Package fieldpath determines the fields of objects that a write touches, and whether patterns of
// fields cover them: the "fields" of a capability (abi/ABI.md, section 8).
//
// A pattern is a path into an object. It covers the named value and everything below:
//
//	spec.replicas
//	metadata.labels                          each label
//	metadata.annotations["example.com/owner"]
//	spec.template.spec.containers[name=app].image
//	status.conditions[*]                     each item of a list, or value of a map
//
// A step in brackets is one of these: a key of a map, which is quoted like in JSON if it has one of
// the characters . [ ] " = * \ a comma or white space; key=value pairs, which match the items of a
// list with these values; or *.
package fieldpath

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxSteps is the maximum length of a pattern: objects are not nested more deeply.
const maxSteps = 128

// step leads from a value to a value in it: by a key of a map, unless another field is set.
type step struct {
	key string
	// item is an item of a list, in the path of an object.
	item map[string]any
	// match has the values of the items that a pattern matches.
	match map[string]string
	// any, in a pattern, means all keys of a map, or all items of a list.
	any bool
	// serial is the same in two paths of one walk if they share all steps up to this one. 0 means
	// unknown.
	serial uint64
}

// Path leads to a field of an object, or is a pattern of such paths.
type Path []step

// NewPath returns the path through the maps with these keys.
func NewPath(keys ...string) Path {
	var p Path
	for _, key := range keys {
		p = p.key(key)
	}
	return p
}

func (p Path) key(key string) Path { return append(slices.Clip(p), step{key: key}) }

// Clone returns a copy of a path that Fields has yielded.
func (p Path) Clone() Path {
	c := slices.Clone(p)
	for i := range c {
		c[i].serial = 0
	}
	return c
}

// String returns the path as a pattern. An item of a list is named by the first of its values that
// identify items in Kubernetes.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.any:
			b.WriteString("[*]")
		case s.item != nil:
			b.WriteString("[" + itemName(s.item) + "]")
		case s.match != nil:
			b.WriteString("[" + pairs(s.match) + "]")
		case plain(s.key):
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		default:
			b.WriteString("[" + quote(s.key) + "]")
		}
	}
	return b.String()
}

// special are the characters that require quotes.
const special = ".[]\"=*,\\ \t\r\n"

func plain(word string) bool { return word != "" && !strings.ContainsAny(word, special) }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: string: " + err.Error())
	}
	return string(b)
}

func word(s string) string {
	if plain(s) {
		return s
	}
	return quote(s)
}

func pairs(match map[string]string) string {
	list := make([]string, 0, len(match))
	for _, key := range slices.Sorted(maps.Keys(match)) {
		list = append(list, word(key)+"="+word(match[key]))
	}
	return strings.Join(list, ",")
}

func itemName(item map[string]any) string {
	for _, key := range itemKeys {
		if value, ok := text(item[key]); ok {
			return word(key) + "=" + word(value)
		}
	}
	return "*"
}

// text returns a scalar in the form of patterns.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// Len returns the number of steps.
func (p Path) Len() int { return len(p) }

// KeyAt returns the key of step i, or "" if there is no such step or it has no key.
func (p Path) KeyAt(i int) string {
	if i >= len(p) {
		return ""
	}
	return p[i].key
}

// ItemAt returns a value, by key, of the list item at step i. It is "" if the step does not lead to
// an item.
func (p Path) ItemAt(i int, key string) string {
	if i >= len(p) {
		return ""
	}
	value, _ := text(p[i].item[key])
	return value
}

// Within reports whether a path leads to the value of another path, which must have only keys, or
// into that value.
func (p Path) Within(other Path) bool {
	if len(p) < len(other) {
		return false
	}
	for i := range other {
		if p[i].item != nil || p[i].key != other[i].key {
			return false
		}
	}
	return true
}

// Parent returns the path without its last step.
func (p Path) Parent() Path { return slices.Clip(p[:max(0, len(p)-1)]) }
