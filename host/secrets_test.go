// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

const secretValue = "hunter2-hunter2-hunter2"

// What a guest has read from a Secret does not reach the log, neither as text
// nor as an attribute.
func TestSecrets_DoNotReachTheLog(t *testing.T) {
	body := encoded(map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI="}})
	api := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response { return abi.Response{Body: body} }}
	var log bytes.Buffer
	g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(api), Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	text := []byte("it is " + secretValue)
	fields := encoded(map[string]any{"msg": "read", "nested": map[string]any{"a": []any{secretValue}}})
	poke(t, g, 2048, text)
	poke(t, g, 3072, fields)
	play(t, g,
		hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 1000}},
		hostCall{"log", [4]uint32{0, 2048, uint32(len(text))}}, hostCall{"log", [4]uint32{0, 3072, uint32(len(fields))}},
	)
	if strings.Contains(log.String(), "hunter2") || strings.Count(log.String(), redact.Mark) != 2 {
		t.Errorf("the log: %s", &log)
	}
}

// A request that was not carried out teaches nothing: a module could hide any
// word of the log, that of its own denial first. What was written is known.
func TestSecrets_ARefusedRequestTeachesNothing(t *testing.T) {
	secret := encoded(map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": secretValue}})
	request := encoded(map[string]any{"object": map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": secretValue}}})
	for _, tc := range []struct {
		answer abi.Response
		known  bool
	}{
		{abi.Response{Status: abi.StatusDenied, Body: secret}, false},
		{abi.Response{Status: 422, Body: secret}, false},
		{abi.Response{Body: secret}, true},
		{abi.Response{Body: encoded(map[string]any{"apiVersion": "a.b/v1", "kind": "Own", "status": map[string]any{"kind": "Secret", "stringData": map[string]any{"a": secretValue}}})}, false},
	} {
		var values redact.Values
		api := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response { return tc.answer }}
		g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(api), Secrets: &values}))
		poke(t, g, 2048, request)
		play(t, g, hostCall{"api_create", [4]uint32{2048, uint32(len(request)), dstAt, 1000}})
		if got := values.Text(secretValue) == redact.Mark; got != tc.known {
			t.Errorf("%v: known %v, want %v", tc.answer.Status, got, tc.known)
		}
	}
}

// Nor do the errors that a run fails with: those that the guest returns, and
// those of what it returns.
func TestSecrets_DoNotReachErrors(t *testing.T) {
	var values redact.Values
	values.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": secretValue}})
	g := acquire(t, loaded(t, withManifest(t, wasm.Echo, &abi.Manifest{Hooks: abi.HookNames{}}), Config{Secrets: &values}))
	said := echoing(t, map[string]any{"error": map[string]any{"message": "no: " + secretValue, "reason": secretValue}, secretValue: true})
	res, err := g.Reconcile(t.Context(), said)
	if err != nil || res.Error == nil || res.Error.Error() != redact.Mark+": no: "+redact.Mark || res.Unknown[0] != redact.Mark {
		t.Errorf("got %+v (%v), %v", res, res.Error, err)
	}
	_, err = g.Reconcile(t.Context(), echoing(t, map[string]any{"action": secretValue}))
	if ce := callError(t, err); strings.Contains(ce.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// The objects that are reconciled are checked too.
func TestSecrets_ReconciledOnesAreKnown(t *testing.T) {
	var values redact.Values
	m := loaded(t, wasm.Empty, Config{Secrets: &values})
	req := request(0)
	req.Object = encoded(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": secretValue}})
	if _, err := acquire(t, m).Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := values.Text(secretValue); got != redact.Mark {
		t.Errorf("got %q", got)
	}
}

// echoing is a request whose answer, by wasm.Echo, is a value.
func echoing(t *testing.T, value map[string]any) *abi.Request {
	t.Helper()
	b := encoded(value)
	req := request(0)
	req.Object = append(b, byte(len(b)), byte(len(b)>>8), 0, 0)
	return req
}
