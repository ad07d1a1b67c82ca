// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// TestPlaced_OwnedKindsAreWatchedWhereTheirOwnersAre: an owner reference does not cross
// namespaces, so the namespace of the owners takes precedence.
func TestPlaced_OwnedKindsAreWatchedWhereTheirOwnersAre(t *testing.T) {
	namespaced := kinds.Kind{Namespaced: true}
	for name, c := range map[string]struct {
		owners []string
		all    bool
		kind   kinds.Kind
		watch  []string
		want   []string
	}{
		"the owners' namespace":           {[]string{"a"}, false, namespaced, nil, []string{"a"}},
		"it wins over the manifest's":     {[]string{"a"}, false, namespaced, []string{"b"}, []string{"a"}},
		"owners everywhere: the manifest": {nil, false, namespaced, []string{"b"}, []string{"b"}},
		"-A wins over the manifest":       {nil, true, namespaced, []string{"b"}, nil},
		"cluster-scoped: none":            {[]string{"a"}, false, kinds.Kind{}, nil, nil},
	} {
		o := &Options{ControllerSpec: v1alpha1.ControllerSpec{AllNamespaces: c.all}}
		got := o.Placed(Watched{Watch: abi.Watch{Namespaces: c.owners}}, Watched{Kind: c.kind, Watch: abi.Watch{Map: abi.MapOwner, Namespaces: c.watch}})
		if diff := cmp.Diff(c.want, got.Watch.Namespaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReconciled_AKindWithoutNamespacesIsWatchedEverywhere: whatever the manifest says,
// because operators bound their cache by namespaces and do not know the scope of each kind.
// A user who names a namespace for it gets an error.
func TestReconciled_AKindWithoutNamespacesIsWatchedEverywhere(t *testing.T) {
	for kind, want := range map[string][]string{"Web": {home}, "Global": nil} {
		m := &abi.Manifest{For: &abi.Watch{Group: "example.dev", Version: "v1", Kind: kind, Namespaces: []string{home}}}
		got, err := (&Options{}).reconciled(t.Context(), newWorld(), m)
		if err != nil || !slices.Equal(got.Watch.Namespaces, want) {
			t.Errorf("%s: %q, %v", kind, got.Watch.Namespaces, err)
		}
		_, err = (&Options{ControllerSpec: v1alpha1.ControllerSpec{Namespaces: []string{home}}}).reconciled(t.Context(), newWorld(), m)
		if (err != nil) != (kind == "Global") {
			t.Errorf("%s with --namespace: %v", kind, err)
		}
	}
}

// An invalid rule of a manifest is an error of the module that names the rule: the policy
// would treat it as one that allows nothing.
func TestGrantTo_RefusesRulesThatCannotBeRead(t *testing.T) {
	for want, rule := range map[string]abi.Capability{
		"resource and verbs are required": {Resource: "pods"},
		"a..b":                            {Resource: "pods", Verbs: []string{"patch"}, Fields: []string{"a..b"}},
	} {
		p := Planner{Options: Options{Grant: ofManifest}}
		err := p.grant(t.Context(), Watched{}, &Plan{Manifest: &abi.Manifest{Capabilities: []abi.Capability{rule}}})
		if failure.Of(err) != failure.Module || !strings.Contains(err.Error(), "capabilities[0]") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v", rule, err)
		}
	}
}

// secrets is a watch of Secrets.
func secrets(namespaces ...string) Watched {
	return Watched{
		Kind:  kinds.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true},
		Watch: abi.Watch{Version: "v1", Kind: "Secret", Map: abi.MapOwner, Namespaces: namespaces},
	}
}

// TestWithinLimit_AWatchIsARight: a module that is swapped in may watch only kinds that are
// granted or that the first module watched: watched objects are cached, whether or not the
// module is shown them.
func TestWithinLimit_AWatchIsARight(t *testing.T) {
	first, shown := secrets("shop"), secrets("shop")
	watch := first.needs()
	shown.Watch.Map = abi.MapFunc
	seen := shown.needs()
	for name, c := range map[string]struct {
		limit Limit
		next  Plan
		want  string
	}{
		"a new watch":         {Limit{}, Plan{Related: []Watched{secrets()}}, `"resource":"secrets","verbs":["list","watch"]`},
		"the same":            {Limit{Rules: []abi.Capability{watch.Rule()}}, Plan{Related: []Watched{secrets("shop")}}, ""},
		"another namespace":   {Limit{Rules: []abi.Capability{watch.Rule()}}, Plan{Related: []Watched{secrets("kube-system")}}, "kube-system"},
		"now it is shown":     {Limit{Rules: []abi.Capability{watch.Rule()}}, Plan{Related: []Watched{shown}}, `"verbs":["get"]`},
		"it was shown":        {Limit{Rules: []abi.Capability{seen.Rule()}}, Plan{Related: []Watched{shown}}, ""},
		"it was pending":      {Limit{Pending: []Watched{secrets("shop")}}, Plan{Related: []Watched{secrets("shop")}}, ""},
		"pending, but wider":  {Limit{Pending: []Watched{secrets("shop")}}, Plan{Related: []Watched{secrets()}}, `"resource":"secrets"`},
		"another was pending": {Limit{Pending: []Watched{{Watch: abi.Watch{Group: "g", Kind: "Secret"}}}}, Plan{Related: []Watched{secrets("shop")}}, `"resource":"secrets"`},
	} {
		err := c.next.WithinLimit(&c.limit)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if watched := c.limit.AllowsWatch(c.next.Related[0]); (watched == nil) != (err == nil) {
			t.Errorf("%s: a watch that comes later: %v", name, watched)
		}
	}
}

// TestGrant_IsBoundToADigest: documents that are bound to other modules grant nothing, and
// the errors about missing rights say so. The rights of a new module come with its digest:
// they do not exceed the grant, whatever the first one had.
func TestGrant_IsBoundToADigest(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	const head = "apiVersion: wasmctl.dev/v1\nkind: Grant\n"
	const pods = "capabilities:\n- {resource: pods, verbs: [get]}\n- {resource: secrets, verbs: [list, watch]}\n"
	const none = "capabilities: []\n"
	for name, c := range map[string]struct {
		grant       string
		ok, inLimit bool
		hint        bool
	}{
		"not bound":                         {head + pods, true, true, false},
		"bound to it":                       {head + "digests: " + b + "\n" + pods, true, true, false},
		"to both":                           {head + "digests: [" + a + ", " + b + "]\n" + pods, true, true, false},
		"to each, in a document":            {head + "digests: " + a + "\n" + none + "---\n" + head + "digests: " + b + "\n" + pods, true, true, false},
		"to another":                        {head + "digests: " + a + "\n" + pods, false, false, true},
		"to another, and some for all":      {head + none + "---\n" + head + "digests: " + a + "\n" + pods, true, false, true},
		"to it, but for another controller": {head + "digests: " + a + "\n" + pods + "---\n" + head + "controller: other\ndigests: " + b + "\n" + pods, false, false, true},
		"to another, less for it":           {head + "digests: " + a + "\n" + pods + "---\n" + head + "digests: " + b + "\n" + none, true, false, false},
	} {
		g, err := ParseGrant("g.yaml", []byte(c.grant))
		if err != nil {
			t.Fatal(name, err)
		}
		base := &Planner{Options: Options{Grant: g}, Controller: "web", Log: slog.New(slog.DiscardHandler)}
		p, err := base.Of(b)
		hinted := func(err error) bool {
			return err != nil && strings.Contains(err.Error(), a) && strings.Contains(err.Error(), b) && strings.Contains(err.Error(), "add this digest")
		}
		if checked := g.Check("web", b, nil); (err == nil) != c.ok || (checked == nil) != c.ok || !c.ok && (failure.Of(err) != failure.Denied || !hinted(err)) {
			t.Errorf("%s: %v; %v", name, err, checked)
		}
		if !c.ok {
			continue
		}
		if _, err := p.Narrow(t.Context(), secrets("shop")); (err == nil) != c.inLimit || err != nil && (failure.Of(err) != failure.Denied || hinted(err) != c.hint) {
			t.Errorf("%s: a watch: %v", name, err)
		}
		limit, err := p.Limit(t.Context(), Watched{}, &Plan{Manifest: &abi.Manifest{}})
		if err != nil {
			t.Fatal(name, err)
		}
		next := &Plan{asks: []abi.Capability{{Resource: "pods", Verbs: []string{"get"}}}}
		if err := next.WithinLimit(limit); (err == nil) != c.inLimit || err != nil && hinted(err) != c.hint {
			t.Errorf("%s: in the place of another: %v", name, err)
		}
	}
}

// TestGrant_IsBoundToASigner: as with a digest. A module without a required signature gets
// nothing, whatever the grant says.
func TestGrant_IsBoundToASigner(t *testing.T) {
	a, b, c := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64), "sha256:"+strings.Repeat("c", 64)
	const pods = "\ncapabilities: [{resource: pods, verbs: [get]}]\n"
	head := "apiVersion: wasmctl.dev/v1\nkind: Grant\n"
	for name, of := range map[string]struct {
		grant       string
		signers, by []string
		rules       int
		want        []string // of the error; nil if there is none
	}{
		"by one of two":            {head + "signers: [" + a + ", " + b + "]" + pods, []string{b}, nil, 1, nil},
		"by nobody":                {head + "signers: " + a + pods, nil, nil, 0, []string{"bound to signer " + a, "not known to be signed", "to verify it with"}},
		"by another":               {head + "signers: " + a + pods, []string{b}, nil, 0, []string{"bound to signer " + a, "signed by " + b}},
		"by another, some for all": {head + pods[1:] + "---\n" + head + "signers: " + a + pods, []string{b}, nil, 1, nil},
		"of another digest too":    {head + "digests: " + a + "\nsigners: " + b + pods, []string{b}, nil, 0, []string{"bound to digest " + a}},
		"of its digest too":        {head + "digests: " + c + "\nsigners: " + b + pods, []string{b}, nil, 1, nil},
		"of either, in documents":  {head + "digests: " + a + pods + "---\n" + head + "signers: " + a + pods, []string{b}, nil, 0, []string{"digest " + a, "signer " + a}},
		"must be, and is":          {head + pods[1:], []string{a}, []string{a, b}, 1, nil},
		"must be, and is not":      {head + pods[1:], nil, []string{a, b}, 0, []string{"module.verify", "want a signature by " + a + ", " + b, "not known to be signed"}},
		"must be, by another":      {head + pods[1:], []string{c}, []string{a}, 0, []string{"signed by " + c}},
	} {
		g, err := ParseGrant("g.yaml", []byte(of.grant))
		if err != nil {
			t.Fatal(name, err)
		}
		signed := Signed{By: of.by, Signers: func(digest string) []string {
			if digest != c {
				t.Errorf("%s: asked for %s", name, digest)
			}
			return of.signers
		}}
		p, err := (&Planner{Options: Options{Grant: g, Signed: signed}, Controller: "web", Log: slog.New(slog.DiscardHandler)}).Of(c)
		if err != nil {
			if failure.Of(err) != failure.Denied || of.want == nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, want := range of.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: no %q in %v", name, want, err)
				}
			}
			continue
		}
		if rules, _ := p.Grant.File.Rules("web"); of.want != nil || len(rules) != of.rules {
			t.Errorf("%s: %v", name, rules)
		}
	}
	if _, err := (&Planner{Log: slog.New(slog.DiscardHandler)}).Of(c); err != nil {
		t.Error(err)
	}
}

// TestGrant_AFinalizerOfAnotherIsNamed: a finalizer under the API group of the kind belongs
// to the module; any other one is granted by its name, or with the whole manifest.
func TestGrant_AFinalizerOfAnotherIsNamed(t *testing.T) {
	kind := Watched{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Web", Resource: "webs", Namespaced: true}}
	const head = "apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n- {group: example.dev, resource: webs, verbs: [get, list, watch, patch]}\n"
	for _, c := range []struct {
		finalizer, grant string
		all, ok          bool
	}{
		{"example.dev/finalizer", head, false, true},
		{"webs.example.dev/cleanup", head, false, true},
		{"notexample.dev/finalizer", head, false, false},
		{"other.com/finalizer", head, false, false},
		{"other.com/finalizer", head + "finalizers: [other.com/finalizer]\n", false, true},
		{"other.com/finalizer", head + "finalizers: [other.com/finalizer2]\n", false, false},
		{"other.com/finalizer", head + "finalizers: [other.com/finalizer]\ncontroller: another\n---\n" + head, false, false},
		{"other.com/finalizer", "", true, true},
		{"cleanup", head, false, false},
		{"cleanup.example.dev", head, false, false}, // the domain is the part before a slash
		{"cleanup", head + "finalizers: [cleanup]\n", false, true},
		{"cleanup", "", true, true},
	} {
		p := Planner{Options: Options{Grant: ofManifest}, Controller: "web"}
		if !c.all {
			g, err := ParseGrant("g.yaml", []byte(c.grant))
			if err != nil {
				t.Fatal(err)
			}
			p.Grant = g
		}
		err := p.grant(t.Context(), kind, &Plan{Manifest: &abi.Manifest{Finalizer: c.finalizer}})
		if (err == nil) != c.ok || err != nil && (failure.Of(err) != failure.Denied || !strings.Contains(err.Error(), "finalizers: ["+c.finalizer+"]")) {
			t.Errorf("%s under %q: %v", c.finalizer, c.grant, err)
		}
	}
}

// TestGrant_AllThatLacksIsToldAtOnce: the kind, each watch, the finalizer and optional
// rights, so that users do not discover them one by one.
func TestGrant_AllThatLacksIsToldAtOnce(t *testing.T) {
	kind := Watched{Kind: kinds.Kind{Group: "example.dev", Version: "v1", Kind: "Web", Resource: "webs", Namespaced: true}}
	other := secrets()
	other.Kind.Kind, other.Resource, other.Watch.Kind = "ConfigMap", "configmaps", "ConfigMap"
	g := &granted{log: slog.New(slog.DiscardHandler)}
	refused := []abi.Capability{{Resource: "pods", Verbs: []string{"create"}}}
	err := g.bound(kind, &Plan{Manifest: &abi.Manifest{Finalizer: "other.com/finalizer"}, Related: []Watched{secrets(), other}, Refused: refused})
	if failure.Of(err) != failure.Denied {
		t.Fatal(err)
	}
	for _, want := range []string{
		"wasmctl grant MODULE > grant.yaml", "list, watch webs.example.dev", "list, watch secrets", "list, watch configmaps",
		"patch webs.example.dev (fields metadata.finalizers)", "finalizers: [other.com/finalizer]", "create pods",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
}
