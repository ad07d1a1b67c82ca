// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// admitting is wasm.Echo with a webhook of each type and a conversion.
func admitting(tb testing.TB) []byte {
	tb.Helper()
	return withManifest(tb, wasm.Echo, &abi.Manifest{
		Finalizer: "example.com/echo",
		Webhooks:  []abi.Webhook{{Type: abi.WebhookValidate, Path: "/validate"}, {Type: abi.WebhookDefault, Path: "/default"}},
		Conversions: []abi.Conversions{
			{Group: "example.com", Kind: "Color"},
		},
	})
}

// admission is an update whose object is the argument of a guest.
func admission(object []byte) *abi.Admission {
	return &abi.Admission{ID: "u1", Operation: abi.OperationUpdate, Key: abi.Key{Namespace: "default", Name: "web"}, Old: []byte{0x80}, Object: object}
}

var bothTypes = []abi.WebhookType{abi.WebhookValidate, abi.WebhookDefault}

func TestAdmit_ReturnsTheVerdictOfTheGuest(t *testing.T) {
	m := loaded(t, admitting(t), Config{})
	for _, typ := range bothTypes {
		res, err := m.Admit(t.Context(), typ, admission(echoObject(nil)))
		if err != nil || !cmp.Equal(res, abi.AdmissionResult{}) {
			t.Errorf("%s: an empty result: %+v, %v", typ, res, err)
		}
		res, err = m.Admit(t.Context(), typ, admission(echoObject(encoded(map[string]any{
			"denied": map[string]any{"message": "no"}, "warnings": []any{"w"}, "weather": 1,
		}))))
		if err != nil || res.Denied.Message != "no" || len(res.Warnings) != 1 {
			t.Errorf("%s: %+v, %v", typ, res, err)
		}
		_, err = m.Admit(t.Context(), typ, admission(echoObject(encoded(map[string]any{"error": map[string]any{"class": "transient", "message": "not yet"}}))))
		if e, ok := errors.AsType[*abi.ResultError](err); !ok || e.Message != "not yet" || !strings.HasPrefix(err.Error(), "guest["+string(typ)+"]: ") {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if n := m.UnknownKeys(); n != 2 {
		t.Errorf("%d unknown keys were counted", n)
	}
	object := encoded(map[string]any{"object": map[string]any{"a": 2}, "base": map[string]any{"a": 1}})
	if res, err := m.Admit(t.Context(), abi.WebhookDefault, admission(echoObject(object))); err != nil || res.Object == nil || res.Base == nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// rule 17: whatever validate, default and convert return, only their instance is lost.
func TestAdmit_HostileAnswers(t *testing.T) {
	object := echoObject(encoded(map[string]any{"object": map[string]any{}}))
	for _, tc := range []struct {
		name   string
		object []byte
		kind   abi.FailureKind
		want   string
	}{
		{"trap", echoLength(nil, echoTrap), abi.FailureTrap, "trap: wasm error: unreachable"},
		{"never returns", echoLength(nil, echoSpin), abi.FailureTimeout, "timeout: exceeded its time limit (timeout 100ms)"},
		{"outside memory", echoLength(nil, 1<<30), abi.FailureOutput, "does not lie in memory"},
		{"not msgpack", echoObject([]byte{0xc1}), abi.FailureOutput, "msgpack type is not allowed here"},
		{"an object of validate", object, abi.FailureOutput, "an object for a request"},
		{"base without object", echoObject(encoded(map[string]any{"base": map[string]any{}})), abi.FailureOutput, "base without object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := loaded(t, admitting(t), Config{})
			if tc.kind == abi.FailureTimeout {
				hurry(m, 100*time.Millisecond)
			}
			_, err := m.Admit(t.Context(), abi.WebhookValidate, admission(tc.object))
			hurry(m, share.DefaultTimeout)
			if ce := callError(t, err); ce.Kind != tc.kind || ce.Func != abi.ExportValidate || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s: %s", err, tc.kind, tc.want)
			}
			if _, err := m.Admit(t.Context(), abi.WebhookDefault, admission(echoObject(nil))); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
	m := loaded(t, admitting(t), Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // of the request; that of the module is longer
	defer cancel()
	if _, err := m.Admit(ctx, abi.WebhookValidate, admission(echoLength(nil, echoSpin))); callError(t, err).Kind != abi.FailureTimeout ||
		strings.Contains(err.Error(), share.DefaultTimeout.String()) || !strings.Contains(err.Error(), "ms)") {
		t.Errorf("the time that the request had is not named: %v", err)
	}
	gone := &abi.Admission{Operation: abi.OperationDelete, Old: object}
	_, err := m.Admit(t.Context(), abi.WebhookDefault, gone)
	if ce := callError(t, err); ce.Kind != abi.FailureOutput {
		t.Errorf("an object for a delete: %v", err)
	}
}

func TestConvert_AnswersForEachObject(t *testing.T) {
	m := loaded(t, admitting(t), Config{})
	one := map[string]any{"a": int64(1)}
	convert := func(result any) ([][]byte, error) {
		return m.Convert(t.Context(), &abi.Conversion{To: "example.com/v2", Objects: [][]byte{{0x80}, echoObject(encoded(result))}})
	}
	got, err := convert(map[string]any{"objects": []any{one, one}})
	if err != nil || len(got) != 2 || string(got[1]) != string(encoded(one)) {
		t.Errorf("%q, %v", got, err)
	}
	_, err = convert(map[string]any{"error": map[string]any{"class": "permanent", "message": "no way"}})
	if e, ok := errors.AsType[*abi.ResultError](err); !ok || e.Message != "no way" {
		t.Errorf("got %v", err)
	}
	_, err = convert(map[string]any{"objects": []any{one}})
	if ce := callError(t, err); ce.Kind != abi.FailureOutput || ce.Func != abi.ExportConvert {
		t.Errorf("got %v", err)
	}
}

// TestAdmit_DoesNotWaitForReconciles: the calls have slots of their own. Those beyond the slots wait for a free one.
func TestAdmit_DoesNotWaitForReconciles(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, admitting(t), Config{Concurrency: 1})
		acquire(t, m)
		for range admissionSlots { // as calls that run
			m.shared.admissionSlots <- struct{}{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Admit(ctx, abi.WebhookValidate, admission(echoObject(nil))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one call too many: %v", err)
		}
		<-m.shared.admissionSlots
		if _, err := m.Admit(t.Context(), abi.WebhookValidate, admission(echoObject(nil))); err != nil {
			t.Error(err)
		}
	})
}

func TestAdmit_OfACandidate(t *testing.T) {
	m := loaded(t, admitting(t), Config{})
	c, err := m.Prepare(t.Context(), wasm.Empty, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Admit(t.Context(), abi.WebhookValidate, admission(nil)); !errors.Is(err, ErrNoHook) {
		t.Errorf("the candidate lacks the export: %v", err)
	}
	if _, err := m.Admit(t.Context(), abi.WebhookValidate, admission(echoObject(nil))); err != nil {
		t.Errorf("the live revision: %v", err)
	}
	if err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Convert(t.Context(), &abi.Conversion{}); !errors.Is(err, ErrNoHook) {
		t.Errorf("after the swap: %v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Convert(t.Context(), &abi.Conversion{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
