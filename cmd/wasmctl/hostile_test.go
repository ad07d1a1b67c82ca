// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// evil is a text that tries to write a line of its own, and to control the terminal.
const evil = "a\nEVIL\r\x1b[2J\u202eb"

// poison sets all texts in a value to evil, and gives lists and maps an element.
func poison(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the kinds of the fields of answers
	case reflect.String:
		v.SetString(evil)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(strconv.Quote("a\nEVIL")))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		poison(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		poison(key)
		poison(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Now().Add(-time.Minute)))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				poison(field)
			}
		}
	}
}

func poisoned[T any]() (t T) {
	poison(reflect.ValueOf(&t).Elem())
	return t
}

// hostile is a process all of whose texts are evil. Its controller is in a phase.
type hostile struct {
	asked
	phase string
}

func (h *hostile) Status() admin.Status {
	st := poisoned[admin.Status]()
	st.Controllers[0].Phase = h.phase
	return st
}

func (h *hostile) Explain(context.Context, admin.Question) ([]admin.Explanation, error) {
	return poisoned[[]admin.Explanation](), nil
}

func (h *hostile) Top(int) admin.Top { return poisoned[admin.Top]() }

func (h *hostile) History(string) ([]admin.Change, error) { return poisoned[[]admin.Change](), nil }

func (h *hostile) Release(context.Context, string, admin.Release) ([]admin.Released, error) {
	return poisoned[[]admin.Released](), nil
}

func (h *hostile) Shadow(_ context.Context, _ string, _ []byte, _ admin.ShadowOptions, report func(admin.Shadowed) error) (shadow.Summary, error) {
	return poisoned[shadow.Summary](), report(poisoned[admin.Shadowed]())
}

func (h *hostile) LogLevel(string, string) (string, error) { return evil, nil }

func (h *hostile) Logs(_ context.Context, _ string, _ admin.LogQuery, emit func([]byte) error) error {
	line, err := json.Marshal(map[string]string{"time": "2026-01-01T00:00:00Z", "level": "INFO", "msg": evil, "object": evil, evil: evil})
	return errors.Join(err, emit(append(line, '\n')))
}

func (h *hostile) Trigger(context.Context, string, []abi.Key, bool) (admin.Steered, error) {
	return admin.Steered{}, errors.New(evil)
}

// TestOutput_HasNoLinesOfOthers: no text of a process, a module or an object begins a line of a table or of a list, in no form of the output.
func TestOutput_HasNoLinesOfOthers(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{admin.PhaseRunning, admin.PhaseFailed} {
		socket := listen(t, &hostile{phase: phase})
		for _, line := range []string{
			"status", "status --all-replicas", "status -o json", "get", "get -o name", "get -o json", "history", "history -o json", "explain x", "explain x -o json",
			"top", "logs", "logs -o json", "release --all", "log-level x",
		} {
			out := says(t, line+" --socket "+socket)
			if !strings.Contains(out, "EVIL") {
				t.Errorf("%s of one that is %s lacks the text:\n%s", line, phase, out)
			}
			if strings.ContainsAny(out, "\r\x1b\u202e") || strings.Contains(out, "\nEVIL") {
				t.Errorf("%s of one that is %s:\n%s", line, phase, out)
			}
		}
	}
}
