// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGolden_NumbersAndTextsAtTheirEdges(t *testing.T) {
	called := false
	run(t, &scriptHost{}, golden(t, "request-edges"), func(ctx *Context, obj Object) (Action, error) {
		called = true
		equal(t, []any{int64(ctx.Attempt()), ctx.ConfigGeneration()}, []any{min(int64(1<<31), math.MaxInt), int64(math.MaxInt64)})
		ints, err := Decode[[]int64](obj.Value, "spec", "ints")
		equal(t, []any{ints, err}, []any{[]int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, math.MaxUint32, -33, 0}, nil})
		floats, err := Decode[[]float64](obj.Value, "spec", "floats")
		equal(t, []any{floats, err}, []any{[]float64{0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, 16777217.5, 1}, nil})
		equal(t, obj.Strings("spec", "strings"), []string{"", "größe 😀", "a\x00b", strings.Repeat("s", 256)})
		equal(t, []any{obj.String("spec", ""), obj.Type("spec", "nil"), obj.Type("spec", "a.b/c")}, []any{"empty key", TypeNil, TypeMap})
		return AwaitChange(), nil
	})
	equal(t, called, true)
}

// TestContext_CountsStopAtTheLargestInt: with TinyGo, an int has 32 bits.
// GOARCH=386 tests that natively.
func TestContext_CountsStopAtTheLargestInt(t *testing.T) {
	huge := int64(1)<<40 + 3
	msg := must(t, Map{"id": "r", "attempt": huge, "reasons_dropped": huge, "key": Map{"name": "n"}})
	run(t, &scriptHost{}, msg, func(ctx *Context, _ Object) (Action, error) {
		_, dropped := ctx.Reasons()
		want := min(huge, math.MaxInt)
		equal(t, []int64{int64(ctx.Attempt()), int64(dropped), int64(ctx.in.failed().Attempt)}, []int64{want, want, want})
		return AwaitChange(), nil
	})
}

func TestGolden_WhatAYoungerHostSendsIsRead(t *testing.T) {
	called := false
	run(t, &scriptHost{}, golden(t, "request-future"), func(ctx *Context, obj Object) (Action, error) {
		called = true
		equal(t, []any{ctx.ID(), ctx.Attempt(), ctx.Key(), ctx.Reason().Type}, []any{"r3", 4, ObjectKey{"default", "hello"}, ReasonType("SolarFlare")})
		equal(t, []any{obj.String("spec", "text"), ctx.HostHas("teleport"), ctx.HostHas("api_list")}, []any{"hello", true, false})
		return AwaitChange(), nil
	})
	equal(t, called, true)
}

func TestGolden_StatusOfTheAPIServerBecomesAnError(t *testing.T) {
	host := &scriptHost{status: 404, body: golden(t, "status-notfound")}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		_, err := ctx.Client().Get(ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello-content"}, GetOptions{})
		equal(t, IsNotFound(err), true)
		equal(t, err.Error(), `api_get ConfigMap[default/hello-content]: NotFound: configmaps "hello-content" not found`)
		return AwaitChange(), nil
	})
}

func TestGolden_MoreOperationsAreWritten(t *testing.T) {
	obj := goldenValue(t, "api-create")["object"]
	cases := map[string]func(ctx *Context) error{
		"api-create": func(ctx *Context) error {
			_, err := ctx.Client().Create(obj, WriteOptions{FieldValidation: "Strict"})
			return err
		},
		"api-update": func(ctx *Context) error {
			_, err := ctx.Client().UpdateStatus(obj, WriteOptions{FieldValidation: "Strict", Preconditions: Preconditions{ResourceVersion: "4711"}})
			return err
		},
		"config-key": func(ctx *Context) error { _, err := ctx.Config("suffix"); return err },
		"config-all": func(ctx *Context) error { _, err := ctx.AllConfig(); return err },
	}
	for name, call := range cases {
		host := &scriptHost{}
		host.answer(t, 0, Map{"kind": "Answer"})
		run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			equal(t, call(ctx), nil)
			return AwaitChange(), nil
		})
		equal(t, host.asked(t), any(goldenValue(t, name)))
	}
}

// TestGolden_EveryFileIsNamedHere: this SDK must handle each message that is
// added to abi/testdata. Package internal/wire tests the invalid messages.
func TestGolden_EveryFileIsNamedHere(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	equal(t, err, nil)
	var text strings.Builder
	for _, name := range tests {
		b, err := os.ReadFile(name)
		equal(t, err, nil)
		text.Write(b)
	}
	files, err := filepath.Glob("../../abi/testdata/*.msgpack")
	equal(t, err, nil)
	equal(t, len(files) > 40, true)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".msgpack")
		if !strings.HasPrefix(name, "bad-") && !strings.Contains(text.String(), `"`+name+`"`) {
			t.Errorf("abi/testdata/%s.msgpack: no test of this SDK names it", name)
		}
	}
}
