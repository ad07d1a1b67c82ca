// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

func TestStatus_IsAppliedToTheSubresource(t *testing.T) {
	d := newDeclarer(t)
	status := func(size int) *abi.Declared { return &abi.Declared{Status: msg(t, map[string]any{"size": size})} }
	d.declare(status(2))
	got := d.ok(abi.OpAPIGet, d.sprocketRef("owner"))
	if at(got, "status", "size") != int64(2) || at(got, "spec", "size") != int64(1) {
		t.Errorf("status %v, spec %v", got["status"], got["spec"])
	}
	d.declare(&abi.Declared{Status: msg(t, map[string]any{})})
	if got := d.ok(abi.OpAPIGet, d.sprocketRef("owner")); at(got, "status", "size") != nil {
		t.Errorf("a field that is declared no longer: %v", got["status"])
	}
	d.ok(abi.OpAPIApply, map[string]any{"object": d.sprocket("owner", "status", map[string]any{"size": 5}), "subresource": "status", "fieldManager": "other"})
	e, _ := d.refuse(abi.ErrorConflict, ReasonFieldConflict, `"other" owns .status.size`, status(3))
	if e.Step != StepStatus || e.Key.Name != "owner" {
		t.Errorf("%+v", e)
	}
	forced := status(3)
	forced.Force = true
	d.declare(forced)
	if got := d.ok(abi.OpAPIGet, d.sprocketRef("owner")); at(got, "status", "size") != int64(3) {
		t.Errorf("forced: %v", got["status"])
	}
	d.refuse(abi.ErrorPermanent, "InvalidResult", "want a map", &abi.Declared{Status: []byte{1}})
	d.refuse(abi.ErrorTransient, "InternalError", "status.size: expected numeric", &abi.Declared{Status: msg(t, map[string]any{"size": "text"})})
	d.cfg.Policy = NewPolicy(nil)
	d.refuse(abi.ErrorPermanent, "Denied", `"subresources":["status"]`, status(4))
}

// TestStatus_OfAnObjectThatIsGoneIsAConflict: it was deleted, or deleted and
// made again, since the run saw it.
func TestStatus_OfAnObjectThatIsGoneIsAConflict(t *testing.T) {
	d := newDeclarer(t)
	r := &abi.Declared{Status: msg(t, map[string]any{"size": 2})}
	d.ok(abi.OpAPIDelete, d.sprocketRef("owner"))
	d.refuse(abi.ErrorConflict, "NotFound", "not found", r)
	d.newOwner("owner")
	d.refuse(abi.ErrorConflict, ReasonLostRace, "recreated", r)
}

func TestStatus_NeedsTheSubresource(t *testing.T) {
	d := newDeclarer(t)
	kind, err := d.cfg.Resolver.Resolve(t.Context(), "configmaps")
	if err != nil {
		t.Fatal(err)
	}
	d.owner = Owner{kind, msg(t, d.ok(abi.OpAPICreate, map[string]any{"object": d.cm("a", nil)}))}
	_, sent := d.refuse(abi.ErrorTransient, ReasonNoStatus, "v1/configmaps has no status subresource", &abi.Declared{Status: msg(t, map[string]any{})})
	if strings.Contains(strings.Join(sent, ","), "PATCH") {
		t.Errorf("sent %v", sent)
	}
}
