// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// admissionMessage returns the message that the host writes in three parts.
func admissionMessage(a *Admission) []byte {
	head, split := AppendAdmissionHead(nil, a)
	msg := append(append([]byte(nil), head[:split]...), a.Old...)
	return append(append(msg, head[split:]...), a.Object...)
}

// TestAdmission_MessageHasAllFields compares the message of random admissions with a map that is built key by key.
func TestAdmission_MessageHasAllFields(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := func() string { return []string{"", "a", "größe"}[r.IntN(3)] }
	object := func(m map[string]any, key string) []byte {
		if r.IntN(2) == 0 {
			return nil
		}
		m[key] = map[string]any{"a": text()}
		return mustValue(m[key])
	}
	set := func(m map[string]any, key, value string) string {
		if value != "" {
			m[key] = value
		}
		return value
	}
	list := func(m map[string]any, key string) (list []string) {
		for range r.IntN(3) {
			list = append(list, text())
			all, _ := m[key].([]any)
			m[key] = append(all, list[len(list)-1])
		}
		return list
	}
	target := func() (Target, map[string]any) {
		t := Target{Group: text(), Version: text(), Kind: text(), Resource: text(), Subresource: text()}
		m := map[string]any{"group": t.Group, "version": t.Version, "kind": t.Kind, "resource": t.Resource}
		set(m, "subresource", t.Subresource)
		return t, m
	}
	for range 1000 {
		at, wantAt := target()
		by, wantBy := target()
		key := map[string]any{"name": text()}
		user := map[string]any{"username": text()}
		want := map[string]any{
			"v": int64(1), "id": text(), "controller": text(), "webhook": text(), "operation": "UPDATE", "target": wantAt, "requested": wantBy,
			"key": key, "user": user, "config_gen": r.Int64N(1000), "deadline_ms": testTime.UnixMilli(), "caps": []any{},
		}
		a := Admission{
			ID: want["id"].(string), Controller: want["controller"].(string), Webhook: want["webhook"].(string), Operation: OperationUpdate,
			Target: at, Requested: by, Key: Key{Namespace: set(key, "namespace", text()), Name: key["name"].(string)},
			Object: object(want, "object"), Old: object(want, "old"), Options: object(want, "options"),
			User:      User{Name: user["username"].(string), UID: set(user, "uid", text()), Groups: list(user, "groups")},
			ConfigGen: want["config_gen"].(int64), Deadline: testTime, Caps: list(want, "caps"), DryRun: r.IntN(2) == 0,
		}
		if a.DryRun {
			want["dry_run"] = true
		}
		if r.IntN(2) == 0 {
			extra := map[string]any{}
			user["extra"], a.User.Extra = extra, map[string][]string{"k": list(extra, "k")}
			if extra["k"] == nil {
				extra["k"] = []any{}
			}
		}
		got, err := DecodeValue(admissionMessage(&a))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestConversion_MessageHasAllFields(t *testing.T) {
	one, two := map[string]any{"a": int64(1)}, map[string]any{"b": []any{}}
	got, err := DecodeValue(AppendConversion(nil, &Conversion{
		ID: "u", Controller: "c", To: "g/v2", Objects: [][]byte{mustValue(one), mustValue(two)}, ConfigGen: 7, Deadline: time.UnixMilli(9), Caps: []string{"convert"},
	}))
	want := map[string]any{
		"v": int64(1), "id": "u", "controller": "c", "to": "g/v2", "objects": []any{one, two}, "config_gen": int64(7), "deadline_ms": int64(9), "caps": []any{"convert"},
	}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestVerdict_IsDecoded(t *testing.T) {
	m := map[string]any{"a": int64(1)}
	texts := func(n int) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		return list
	}
	audit := func(n int) map[string]any {
		all := map[string]any{}
		for _, k := range texts(n) {
			all[k.(string)] = "v"
		}
		return all
	}
	causes := func(n int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"message": "m", "later": true}
		}
		return map[string]any{"denied": map[string]any{"message": "m", "causes": list}}
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want func(AdmissionResult) bool // nil: the message is refused
	}{
		"nothing":      {map[string]any{}, func(r AdmissionResult) bool { return cmp.Equal(r, AdmissionResult{}) }},
		"null":         {map[string]any{"denied": nil, "object": nil, "base": nil, "warnings": nil, "audit": nil, "error": nil}, func(r AdmissionResult) bool { return r.Denied == nil && r.Object == nil }},
		"unknown":      {map[string]any{"later": 1.5}, func(r AdmissionResult) bool { return cmp.Equal(r.Unknown, []string{"later"}) }},
		"object":       {map[string]any{"object": m, "base": m}, func(r AdmissionResult) bool { return string(r.Object) == string(mustValue(m)) && r.Base != nil }},
		"denied":       {map[string]any{"denied": map[string]any{"code": int64(422), "message": "m", "reason": "Invalid"}}, func(r AdmissionResult) bool { return cmp.Equal(*r.Denied, Denial{422, "Invalid", "m", nil}) }},
		"empty denied": {map[string]any{"denied": map[string]any{}}, func(r AdmissionResult) bool { return r.Denied != nil }},
		"causes": {causes(MaxCauses), func(r AdmissionResult) bool {
			return len(r.Denied.Causes) == MaxCauses && r.Denied.Causes[0].Message == "m"
		}},
		"warnings": {map[string]any{"warnings": texts(MaxWarnings)}, func(r AdmissionResult) bool { return len(r.Warnings) == MaxWarnings }},
		"audit":    {map[string]any{"audit": audit(MaxAudit)}, func(r AdmissionResult) bool { return len(r.Audit) == MaxAudit && r.Audit["3"] == "v" }},
		"error":    {map[string]any{"error": map[string]any{"class": "transient", "message": "m"}}, func(r AdmissionResult) bool { return r.Error.Message == "m" }},

		"base only":         {in: map[string]any{"base": m}},
		"denied and object": {in: map[string]any{"denied": map[string]any{"message": "m"}, "object": m}},
		"object text":       {in: map[string]any{"object": "x"}},
		"denied text":       {in: map[string]any{"denied": "x"}},
		"code 200":          {in: map[string]any{"denied": map[string]any{"code": int64(200)}}},
		"code 1<<32 + 400":  {in: map[string]any{"denied": map[string]any{"code": int64(1)<<32 + 400}}},
		"many causes":       {in: causes(MaxCauses + 1)},
		"many warnings":     {in: map[string]any{"warnings": texts(MaxWarnings + 1)}},
		"warning map":       {in: map[string]any{"warnings": []any{m}}},
		"many annotations":  {in: map[string]any{"audit": audit(MaxAudit + 1)}},
		"annotation number": {in: map[string]any{"audit": map[string]any{"k": int64(1)}}},
	} {
		switch r, err := DecodeAdmissionResult(mustValue(c.in)); {
		case c.want == nil && !errors.Is(err, ErrType):
			t.Errorf("%s: %v, want a refusal", name, err)
		case c.want != nil && (err != nil || !c.want(r)):
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if r, err := DecodeAdmissionResult(nil); err != nil || !cmp.Equal(r, AdmissionResult{}) {
		t.Errorf("an empty message: %+v, %v", r, err)
	}
}

func TestConverted_HasAsManyObjectsAsTheRequest(t *testing.T) {
	m := map[string]any{"a": int64(1)}
	for name, c := range map[string]struct {
		in   map[string]any
		want string // of the error
	}{
		"two":    {map[string]any{"objects": []any{m, m}}, ""},
		"error":  {map[string]any{"objects": []any{m}, "error": map[string]any{"message": "m"}}, ""},
		"one":    {map[string]any{"objects": []any{m}}, "1 objects for the 2"},
		"three":  {map[string]any{"objects": []any{m, m, m}}, "more objects than the 2"},
		"absent": {map[string]any{}, "0 objects for the 2"},
		"text":   {map[string]any{"objects": []any{m, "x"}}, "want a map"},
		"null":   {map[string]any{"objects": []any{m, nil}}, "want a map"},
	} {
		r, err := DecodeConversionResult(mustValue(c.in), 2)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && (r.Error == nil) != (len(r.Objects) == 2) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r, err := DecodeConversionResult(mustValue(map[string]any{"objects": nil}), 0); err != nil || len(r.Objects) != 0 {
		t.Errorf("no objects: %+v, %v", r, err)
	}
}
