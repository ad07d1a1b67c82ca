// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// TestAdmitted_KeepsTheLastDenials of an object, with the user, the reason and the revision, but without
// values of Secrets. Requests that were allowed, and those about other kinds, are not kept.
func TestAdmitted_KeepsTheLastDenials(t *testing.T) {
	r := NewRecorder(Config{History: 1 << 20})
	r.For("web", kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Web", Resource: "webs", Namespaced: true})
	r.Secrets.LearnTexts([]string{"hunter22hunter"})
	at := time.Unix(1, 0)
	key := abi.Key{Namespace: "shop", Name: "a"}
	admitted := func(id, resource string, res abi.AdmissionResult, err error) {
		r.Admitted(&abi.Admission{
			ID: id, Webhook: "/v", Operation: abi.OperationUpdate, Key: key, User: abi.User{Name: "alice"},
			Target: abi.Target{Group: "example.dev", Version: "v1", Kind: "Web", Resource: resource},
		}, &res, 3, at, err)
	}
	denied := abi.AdmissionResult{Denied: &abi.Denial{Message: "hunter22hunter", Causes: []abi.Cause{{Field: "spec.x", Message: "too large"}}}}
	for i := range 10 {
		admitted(fmt.Sprint(i), "webs", denied, nil)
		admitted("allowed", "webs", abi.AdmissionResult{}, nil)
		admitted("other", "pods", denied, nil)
	}
	admitted("broken", "webs", abi.AdmissionResult{}, errors.New("trap"))
	want := history.Denial{ID: "broken", Time: at, User: "alice", Operation: abi.OperationUpdate, Webhook: "/v", Revision: 3, Failed: true, Message: "trap"}
	got := r.Denials(key)
	if len(got) != 4 || cmp.Diff(want, got[0]) != "" || got[1].ID != "9" || got[3].ID != "7" {
		t.Fatalf("%+v", got)
	}
	if m := got[1].Message; strings.Contains(m, "hunter") || !strings.Contains(m, "spec.x: too large") {
		t.Errorf("message %q", m)
	}
	secret := &abi.Admission{Target: abi.Target{Kind: "Secret"}}
	if m := r.shownMessage(secret, "the password is 1234"); strings.Contains(m, "1234") {
		t.Errorf("about a Secret: %q", m)
	}
}

// TestDenials_AreBounded: any number of objects takes a bounded amount of memory.
func TestDenials_AreBounded(t *testing.T) {
	h := history.New(64 << 10)
	for i := range 10_000 {
		h.Deny(abi.Key{Name: fmt.Sprint(i)}, &history.Denial{Message: strings.Repeat("x", 100)})
	}
	if n := h.Bytes(); n == 0 || n > 8<<10 {
		t.Errorf("%d bytes", n)
	}
	if len(h.Denials(abi.Key{Name: "9999"})) != 1 || len(h.Denials(abi.Key{Name: "1"})) != 0 {
		t.Error("the last object was forgotten before the first")
	}
}
