// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// explained returns the explanation of an object of a fleet.
func explained(f *e2e.Fleet, socket, name string) admin.Explanation {
	f.T.Helper()
	list, err := admin.NewClient(socket).Explain(f.T.Context(), admin.Question{Kind: "webapp", Object: abi.Key{Namespace: f.Ns, Name: name}})
	if err != nil || len(list) != 1 {
		f.T.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// runsOf returns the runs that a reason has led to, alone or among others.
func runsOf(e admin.Explanation, reason abi.ReasonType) []history.Run {
	return slices.DeleteFunc(slices.Clone(e.Runs), func(r history.Run) bool {
		return !slices.ContainsFunc(append(r.Reasons.More, r.Reasons.First), func(of abi.Reason) bool { return strings.HasPrefix(string(of.Type), string(reason)) })
	})
}

// TestExplain_SaysWhatLedToARunAndWhatItWrote: explain names the trigger of a run, the
// changed fields, and the writes of the run as a diff.
func TestExplain_SaysWhatLedToARunAndWhatItWrote(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	c := f.Start("--socket", socket, "--predicate", "generation")
	f.Confirm()
	f.Put(t.Context(), "a", e2e.App{Image: "i:2"})
	f.Confirm()
	var run *history.Run
	t.Cleanup(func() {
		if run == nil {
			t.Log(e2e.Steer(t, "explain", socket, "webapp/a", "-n", f.Ns))
		}
	})
	enginetest.Until(t, "the run of the change is known", func() bool {
		e := explained(f, socket, "a")
		for i := range e.Runs {
			if hasChange(e.Runs[i].Changes, diff.Change{Path: "spec.image", Before: `"i:1"`, After: `"i:2"`}) {
				run = &e.Runs[i]
			}
		}
		return run != nil
	})
	if run.Reasons.First.String() != "ObjectUpdated" || run.Result != "succeeded" || run.Took <= 0 || run.ID == "" || run.Attempt != 1 {
		t.Errorf("%+v", run)
	}
	var wrote bool
	for _, o := range run.Operations {
		if o.Resource == "deployments.apps" && o.Name == "api_apply" {
			wrote = o.Effect == "changed" && hasChange(o.Changes, diff.Change{Path: "spec.template.spec.containers[name=app].image", Before: `"i:1"`, After: `"i:2"`})
		}
	}
	if !wrote {
		t.Errorf("the diff of the Deployment is missing: %+v", run.Operations)
	}
	text := e2e.Steer(t, "explain", socket, "webapp/a", "-n", f.Ns)
	for _, args := range [][]string{{"webapp", "a", "-n", f.Ns}, {"webapp", f.Ns + "/a"}, {f.Ns + "/a"}, {"a", "-n", f.Ns}} {
		same := e2e.Steer(t, "explain", socket, append(args, "--last", "1")...)
		if head, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(same, head) || strings.Count(same, "because") != 1 {
			t.Errorf("%q:\n%s", args, same)
		}
	}
	for _, want := range []string{"because   ObjectUpdated", `~ spec.image: "i:1" -> "i:2"`, "changed   apply deployments.apps", "created   apply deployments.apps", "controller webapp: idle"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

func hasChange(changes []diff.Change, want diff.Change) bool {
	return slices.Contains(changes, want)
}

// TestExplain_SaysWhyAnObjectDoesNotRun: each cause is named.
func TestExplain_SaysWhyAnObjectDoesNotRun(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"})
	label := func(name, patch string) {
		_, err := f.Client.Resource(e2e.WebApps).Namespace(f.Ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	label("a", `{"metadata":{"labels":{"tier":"web"}}}`)
	c := f.Start("--socket", socket, "--predicate", "generation", "-l", "tier=web")
	c.WantLine(`"msg":"reconciled"`, `"object":"`+f.Ns+`/a"`)
	wantVerdict := func(name, state, part string) {
		t.Helper()
		enginetest.Until(t, name+" is "+state+": "+part, func() bool {
			e := explained(f, socket, name)
			return e.State == state && strings.Contains(strings.Join(e.Why, "\n"), part)
		})
	}
	wantVerdict("b", "not selected", "do not match the selector tier=web")
	wantVerdict("nobody", "absent", "the API server has no webapps")
	n := 0
	enginetest.Until(t, "a is idle: an event was hidden", func() bool {
		n++ // a run that comes after the event counts from there
		label("a", fmt.Sprintf(`{"metadata":{"labels":{"more":"%d"}}}`, n))
		e := explained(f, socket, "a")
		return e.State == "idle" && e.Hidden != nil && strings.Contains(e.Why[0], "predicates have hidden") && e.Hidden.Unchanged == "generation"
	})
	if got := e2e.Steer(t, "pause", socket, "a", "-n", f.Ns); got != "paused webapp "+f.Ns+"/a\n" {
		t.Errorf("pause printed %q", got)
	}
	wantVerdict("a", "paused", "annotation wasmctl.dev/paused")
	e2e.Steer(t, "resume", socket, f.Ns+"/a")
	enginetest.Until(t, "a is not paused", func() bool { return explained(f, socket, "a").State == "idle" })
	if text := e2e.Steer(t, "top", socket); !strings.Contains(text, f.Ns+"/a") || !strings.Contains(text, "MEMORY") {
		t.Errorf("top:\n%s", text)
	}
	e2e.Steer(t, "pause", socket, "webapp")
	wantVerdict("a", "paused", "wasmctl resume webapp")
	client := admin.NewClient(socket)
	list, err := client.Explain(t.Context(), admin.Question{Controller: "webapp", Object: abi.Key{Namespace: "elsewhere", Name: "a"}})
	if err != nil || len(list) != 1 || !strings.Contains(strings.Join(list[0].Why, "\n"), "namespace elsewhere is not watched, only "+f.Ns) {
		t.Errorf("%+v, %v", list, err)
	}
	for kind, want := range map[string]string{"deployment": "watches this kind for its webapps", "nope": "CONTROLLER NAMESPACE/NAME"} {
		if _, err := client.Explain(t.Context(), admin.Question{Kind: kind, Object: abi.Key{Name: "a"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestExplain_SaysWhatChangedInARelatedObject: for a run that an owned object triggered,
// explain names the changed fields of that object, if the watch has them.
func TestExplain_SaysWhatChangedInARelatedObject(t *testing.T) {
	t.Parallel()
	w, socket := newWalled(t), e2e.NewSocket(t)
	w.generate("a")
	c := w.run("--grant-manifest", "--socket", socket)
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	// Wait for the run that the new ConfigMap triggers. An earlier edit would be part of the creation.
	c.WantLine(`"msg":"reconciled"`, `"reason":"`, "Related configmaps "+w.ns+"/a")
	patch := []byte(`{"metadata":{"annotations":{"edited":"yes"}}}`)
	if _, err := w.client.Resource(e2e.ConfigMaps).Namespace(w.ns).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var text string
	enginetest.Until(t, "the change of the ConfigMap is explained", func() bool {
		text = e2e.Steer(t, "explain", socket, "configmapgenerator/a", "-n", w.ns)
		return strings.Contains(text, "related   configmaps "+w.ns+"/a was changed\n          + metadata.annotations") && strings.Contains(text, "edited")
	})
	if !strings.Contains(text, "because   Related configmaps "+w.ns+"/a") {
		t.Errorf("the reason is missing:\n%s", text)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
