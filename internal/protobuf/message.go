// SPDX-License-Identifier: Apache-2.0

// Package protobuf turns the protobuf of built-in kinds into the msgpack of package abi in one pass, with the same result as for their
// JSON. Its tables are derived from the Go types of k8s.io/api, whose tags name a field in both formats.
package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// Message is the table of one Go type: the entries of its map, and their locations in protobuf. It is immutable once TableOf has returned
// it.
type Message struct {
	entries []entry          // ordered by key
	numbers []number         // by field number
	managed int              // the index of managedFields in ObjectMeta, otherwise -1
	opaque  transcode.Fields // only of a kind
}

// number is the meaning of a field number: an entry, or a struct whose fields are entries of the same map.
type number struct {
	known    bool
	entry    int
	isInline bool
	inline   []number
}

// entry is an entry of a map.
type entry struct {
	name   string
	key    []byte // the name in msgpack
	number protowire.Number
	*value // of each element, if there are several
	list   bool
	mapped bool
	// pointer means that a value that is present is written, even if it is zero.
	pointer bool
	// omitEmpty and omitZero are the options of the json tag.
	omitEmpty, omitZero bool
}

// tables caches the tables.
var tables = struct {
	sync.Mutex
	of map[reflect.Type]*Message // guarded by Mutex
}{of: map[reflect.Type]*Message{}}

// TableOf returns the table of a kind with the Go struct t. It fails if t contains something that the table cannot represent: objects of
// such a kind must be read as JSON.
func TableOf(t reflect.Type) (*Message, error) {
	tables.Lock()
	defer tables.Unlock()
	if m := tables.of[t]; m != nil {
		return m, nil
	}
	b := builder{made: map[reflect.Type]*Message{}}
	m, err := b.message(t, true)
	if err != nil {
		return nil, fmt.Errorf("protobuf: type %s: %w", t, err)
	}
	m.opaque = m.opaqueFields(map[*Message]bool{})
	tables.of[t] = m
	return m, nil
}

// builder builds the tables of one kind.
type builder struct{ made map[reflect.Type]*Message }

// message returns the table of a struct; root means that it is a kind, whose apiVersion and kind are outside of the protobuf of its fields.
func (b *builder) message(t reflect.Type, root bool) (*Message, error) {
	if m := b.made[t]; m != nil {
		return m, nil
	}
	m := &Message{managed: -1}
	b.made[t] = m
	if root {
		m.entries = append(m.entries, typeEntry("apiVersion"), typeEntry("kind"))
	}
	var err error
	if m.numbers, err = b.fields(m, t, root); err != nil {
		return nil, err
	}
	order := make([]int, len(m.entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(m.entries[x].name, m.entries[y].name) })
	sorted, places := make([]entry, len(order)), make([]int, len(order))
	for place, i := range order {
		sorted[place], places[i] = m.entries[i], place
		if place > 0 && sorted[place-1].name == sorted[place].name {
			return nil, fmt.Errorf("field[%s]: occurs twice", sorted[place].name)
		}
		if sorted[place].name == "managedFields" && t == reflect.TypeFor[metav1.ObjectMeta]() {
			m.managed = place
		}
	}
	m.entries = sorted
	move(m.numbers, places)
	return m, nil
}

// typeEntry returns an entry for apiVersion or kind. It has no number.
func typeEntry(name string) entry {
	return entry{name: name, key: keyOf(name), value: &value{form: asText}, omitEmpty: true}
}

func keyOf(name string) []byte {
	key, _ := abi.AppendValue(nil, name) // a string is always a value
	return key
}

// move updates numbers after entry i has moved to places[i].
func move(numbers []number, places []int) {
	for i := range numbers {
		if numbers[i].isInline {
			move(numbers[i].inline, places)
		} else if numbers[i].known {
			numbers[i].entry = places[numbers[i].entry]
		}
	}
}

// fields appends the fields of t to the entries of m, and returns their numbers.
func (b *builder) fields(m *Message, t reflect.Type, root bool) ([]number, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is not a struct")
	}
	var numbers []number
	for sf := range fieldsOf(t) {
		if root && sf.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		n, err := b.field(m, &sf)
		if err != nil {
			return nil, fmt.Errorf("field[%s]: %w", sf.Name, err)
		}
		at, err := strconv.Atoi(part(sf.Tag.Get("protobuf"), 1))
		if err != nil || at < 1 || at > maxNumber {
			return nil, fmt.Errorf("field[%s]: has no number", sf.Name)
		}
		for len(numbers) <= at {
			numbers = append(numbers, number{})
		}
		numbers[at] = n
	}
	return numbers, nil
}

// maxNumber is the maximum field number, because numbers index a slice.
const maxNumber = 2048

// fieldsOf yields the serialized fields of a struct.
func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for sf := range t.Fields() {
			if sf.IsExported() && sf.Tag.Get("json") != "-" && !yield(sf) {
				return
			}
		}
	}
}

// part returns a part of a tag.
func part(tag string, n int) string {
	parts := strings.Split(tag, ",")
	if n >= len(parts) {
		return ""
	}
	return parts[n]
}

// field appends one field to the entries of m.
func (b *builder) field(m *Message, sf *reflect.StructField) (number, error) {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if sf.Anonymous && name == "" {
		inline, err := b.fields(m, sf.Type, false)
		return number{known: true, isInline: true, inline: inline}, err
	}
	if name == "" || strings.Contains(options, "string") || strings.Contains(options, "inline") {
		return number{}, errors.New("its JSON has no separate name")
	}
	e := entry{name: name, key: keyOf(name)}
	at, _ := strconv.ParseInt(part(sf.Tag.Get("protobuf"), 1), 10, 32)
	e.number = protowire.Number(at)
	e.omitEmpty, e.omitZero = strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")
	t := sf.Type
	switch isOwn := implements[unmarshaler](t); {
	case t.Kind() == reflect.Pointer:
		e.pointer, t = true, t.Elem()
	case t.Kind() == reflect.Map && !isOwn:
		if t.Key().Kind() != reflect.String {
			return number{}, errors.New("its keys are not text")
		}
		e.mapped, t = true, t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !isOwn:
		e.list, t = true, t.Elem()
	}
	var err error
	if e.value, err = b.value(t); err != nil {
		return number{}, err
	}
	if f := e.form; e.omitZero && !e.pointer && (f == asMap || f == asQuantity || f == asIntOrString || f == asDuration || f == asJSON || f == asOpaque) {
		return number{}, errors.New("it is omitted by a method")
	}
	m.entries = append(m.entries, e)
	return number{known: true, entry: len(m.entries) - 1}, nil
}
