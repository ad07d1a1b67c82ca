// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// made returns the color of the ConfigMap that Colored declares; "" if there is none.
func (t *tenant) made() string {
	t.Helper()
	cm, err := t.client.CoreV1().ConfigMaps(t.ns).Get(t.Context(), "made", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	t.must(err)
	return cm.Data["color"]
}

// force requests another attempt with the wanted module.
func (t *tenant) force(name, at string) {
	t.Helper()
	t.annotate(name, `{"`+v1alpha1.RequestedAt+`": "`+at+`", "`+v1alpha1.ForceAt+`": "`+at+`"}`)
}

// annotate sets annotations, in JSON.
func (t *tenant) annotate(name, annotations string) {
	t.Helper()
	patch := `{"metadata": {"annotations": ` + annotations + `}}`
	_, err := t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	t.must(err)
}

// TestServe_AShadowThatDiffersDoesNotTakeOver: the status has its evidence, also while
// it runs, and it stays refused across a restart until it is forced. A module that does
// the same takes over.
func TestServe_AShadowThatDiffersDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	colored := func(color string, n int) []byte {
		return enginetest.Numbered(enginetest.Colored(t, color, enginetest.MayWrite("configmaps")), n)
	}
	blue, same, pink := colored("blue", 1), colored("blue", 2), colored("pink", 3)
	tenant.create("web", map[string]any{
		"module": tenant.module("v1", blue), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "fieldSelector": "metadata.name=o0",
		"grant": map[string]any{"manifest": true}, "rollout": map[string]any{"probation": "1s", "shadow": map[string]any{"runs": 1}},
	})
	c := startServe(tenant)
	tenant.ready("web", "True", "Succeeded")
	tenant.patch("web", map[string]any{"module": tenant.module("v2", same)})
	if r := tenant.ready("web", "True", "Succeeded"); r.Status.Live.Digest != load.DigestOf(same) || tenant.made() != "blue" {
		t.Errorf("%q, %+v", tenant.made(), r.Status)
	}
	rollout := func(shadow map[string]any) map[string]any {
		return map[string]any{"rollout": map[string]any{"shadow": shadow}}
	}
	tenant.patch("web", withAll(map[string]any{"module": tenant.module("v3", pink)}, rollout(map[string]any{"time": "1h", "runs": nil})))
	tenant.ready("web", "False", "Shadow")
	var now v1alpha1.Status
	defer func() {
		if t.Failed() {
			t.Logf("%+v, candidate %+v", now, now.Candidate)
		}
	}()
	enginetest.Until(t, "the status has what differs", func() bool {
		now = tenant.get("web").Status
		k := now.Candidate
		return k != nil && k.Digest == load.DigestOf(pink) && k.Stage == "Shadow" && k.Runs > 0 && k.Differences == k.Runs && strings.Contains(k.Difference, `"blue" -> "pink"`)
	})
	tenant.patch("web", rollout(map[string]any{"time": "1m", "runs": 1}))
	refused := func() {
		t.Helper()
		r := tenant.ready("web", "False", "Differs")
		if s := r.Status; s.Live.Digest != load.DigestOf(same) || s.Refused.Digest != load.DigestOf(pink) || s.Candidate != nil || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.Stalled) ||
			!enginetest.ContainsAll(s.Refused.Message, "compared 1 runs", tenant.ns+"/o0", `data.color: "blue" -> "pink"`) {
			t.Errorf("%+v", s)
		}
		if tenant.made() != "blue" {
			t.Errorf("it has written: %q", tenant.made())
		}
	}
	refused()
	c.Signal(syscall.SIGKILL)
	<-c.Done
	c = startServe(tenant)
	c.WantLine(`"msg":"reconciled"`, tenant.ns+"/o0")
	tenant.touch("o0")
	c.WantLine(`"msg":"reconciled"`, tenant.ns+"/o0", `"reason":"ObjectUpdated"`)
	refused()
	tenant.force("web", "2")
	r := tenant.ready("web", "True", "Succeeded")
	enginetest.Until(t, "the forced module writes", func() bool { return tenant.made() == "pink" })
	if r.Status.Live.Digest != load.DigestOf(pink) || r.Status.Refused != nil {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": tenant.module("v4", wasm.StartTrap)})
	if r = tenant.ready("web", "False", "ModuleRefused"); r.Status.Live.Digest != load.DigestOf(pink) || r.Status.Refused == nil {
		t.Errorf("%+v", r.Status)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_AuditSaysWhatItWouldWrite: without a grant, nothing is written. The rules in
// the status are a grant with which the module then writes.
func TestServe_AuditSaysWhatItWouldWrite(t *testing.T) {
	tenant := newTenant(t)
	tenant.create("web", map[string]any{
		"module": tenant.module("v1", enginetest.Colored(t, "blue", enginetest.MayWrite("configmaps", "secrets"))), "mode": "Audit",
		"for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "fieldSelector": "metadata.name=o0", "rollout": map[string]any{"probation": "1s"},
	})
	c := startServe(tenant)
	var audit *v1alpha1.Audit
	enginetest.Until(t, "the status has what it would write", func() bool {
		audit = tenant.get("web").Status.Audit
		return audit != nil && len(audit.Writes) > 0
	})
	rules, err := json.Marshal(audit.Capabilities)
	tenant.must(err)
	if len(audit.Writes) != 1 || !enginetest.ContainsAll(audit.Writes[0], "created apply configmaps "+tenant.ns+"/made") || !strings.Contains(string(rules), `"data.color"`) || strings.Contains(string(rules), "secrets") {
		t.Errorf("%+v", audit)
	}
	t.Logf("%s: %q", rules, audit.Writes)
	r := tenant.ready("web", "True", "Succeeded")
	if m := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready).Message; !strings.Contains(m, "mode Audit") || tenant.made() != "" {
		t.Errorf("%q: %s", m, tenant.made())
	}
	tenant.patch("web", map[string]any{"mode": "Enforce", "grant": map[string]any{"capabilities": json.RawMessage(rules)}})
	r = tenant.ready("web", "True", "Succeeded")
	enginetest.Until(t, "it writes", func() bool { return tenant.made() == "blue" })
	if r.Status.Audit != nil {
		t.Errorf("%+v", r.Status)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
