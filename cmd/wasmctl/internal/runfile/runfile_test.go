// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// reported has the values of the flags in the tests.
type reported struct {
	workers int
	dev     bool
	files   []string
}

func testFormat(o *reported) Format {
	process := &cobra.Command{}
	process.Flags().IntVar(&o.workers, "workers", 0, "how many")
	process.Flags().BoolVar(&o.dev, "dev", false, "whether")
	process.Flags().StringArrayVar(&o.files, "file", []string{"default"}, "")
	return Format{Process: process.Flags(), Fields: []Field{
		{Path: "name", Former: "name"},
		{Path: "module.file", IsPath: true},
		{Path: "module.image"},
		{Path: "module.watch", Former: "watch"},
		{Path: "for", Former: "for"},
		{Path: "owns", Former: "owns"},
		{Path: "namespaces", Former: "namespace"},
		{Path: "selector", Former: "selector"},
		{Path: "limits", Former: "limit"},
		{Path: "limits.timeout", Former: "timeout"},
		{Path: "config", Former: "config"},
		{Path: "configFile", Former: "configFile", IsPath: true},
		{Path: "concurrency", Former: "concurrency"},
		{Path: "rollout.canary.percent", Former: "canary"},
		{Path: "grant.manifest", Former: "grantManifest"},
		{Path: "grantFile", Former: "grant", IsPath: true},
	}}
}

func parse(t *testing.T, content string, env map[string]string) (*File, error) {
	t.Helper()
	return Parse("dir/c.yaml", []byte(content), testFormat(&reported{}), func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

const head = "apiVersion: wasmctl.dev/v1\nkind: Controllers\n"

func TestParse_ReadsSpecs(t *testing.T) {
	f, err := parse(t, head+`
process: {workers: "${N}", dev: true, file: x}
defaults: &d
  limits: {timeout: 10s, api_rate: 5}
  owns: [cm]
  config: {a: b}
controllers:
- name: a
  module: a.wasm
  config: {greeting: "hello, ${WHO:-you}", equation: "a=b,c", n: 3, dollar: $$HOME, plain: 1$}
  rollout: {canary: {percent: 12.5}}
- name: b
  module: {file: /abs/b.wasm, watch: "${WATCH}"}
  limits: {timeout: 5s}
  owns: [cm, {apiVersion: v1, kind: Secret}]
  namespaces: one
  selector: tier in (a, b), new
  concurrency: ${N}
  configFile: conf/b.yaml
- {name: c, module: "oci://h/r:1", selector: {matchLabels: {a: b}}}
`, map[string]string{"N": "7", "WATCH": "false"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Values{"workers": {"7"}, "dev": {"true"}, "file": {"x"}}, f.Process); diff != "" {
		t.Errorf("process (-want +got):\n%s", diff)
	}
	limits := func(timeout string) v1alpha1.Limits {
		return v1alpha1.Limits{"timeout": intstr.FromString(timeout), "api_rate": intstr.FromString("5")}
	}
	var a, b, c v1alpha1.ControllerSpec
	a.Name, a.Module.File, a.Limits, a.Owns = "a", "dir/a.wasm", limits("10s"), []v1alpha1.Kind{{Kind: "cm"}}
	a.Config = v1alpha1.Config{"greeting": "hello, you", "equation": "a=b,c", "n": "3", "dollar": "$HOME", "plain": "1$"}
	a.Rollout = &v1alpha1.Rollout{Canary: &v1alpha1.Canary{Percent: 12.5}}
	b.Name, b.Module.File, b.Module.Watch, b.Limits = "b", "/abs/b.wasm", new(false), limits("5s")
	b.Owns, b.Namespaces = []v1alpha1.Kind{{Kind: "cm"}, {APIVersion: "v1", Kind: "Secret"}}, []string{"one"}
	b.Selector, _ = v1alpha1.SelectorOf("tier in (a, b), new")
	b.Concurrency, b.ConfigFile, b.Config = new(int32(7)), "dir/conf/b.yaml", v1alpha1.Config{"a": "b"}
	c.Name, c.Module.Image, c.Limits, c.Owns, c.Config = "c", "h/r:1", limits("10s"), []v1alpha1.Kind{{Kind: "cm"}}, v1alpha1.Config{"a": "b"}
	c.Selector = &v1alpha1.Selector{MatchLabels: map[string]string{"a": "b"}}
	for i, want := range []v1alpha1.ControllerSpec{a, b, c} {
		if diff := cmp.Diff(want, f.Controllers[i].Spec); diff != "" {
			t.Errorf("controllers[%d] (-want +got):\n%s", i, diff)
		}
	}
	for path, want := range map[string]string{"config.n": "12:66", "limits.timeout": "6:21", "nothing": "10:3", "owns[0]": "7:10", "": "10:3"} {
		if got := f.Controllers[0].Where(path); got != want {
			t.Errorf("%q is at %s, want %s", path, got, want)
		}
	}
}

func TestApply_TheCommandLineWins(t *testing.T) {
	var o reported
	f := testFormat(&o).Process
	if err := f.Set("workers", "3"); err != nil {
		t.Fatal(err)
	}
	if err := (Values{"workers": {"9"}, "dev": {"true"}, "file": {"a", "b,c"}}).Apply(f); err != nil {
		t.Fatal(err)
	}
	if o.workers != 3 || !o.dev || !cmp.Equal(o.files, []string{"a", "b,c"}) {
		t.Errorf("%+v", o)
	}
}

// TestParse_SaysWhereAndWhat: for each mistake in a file, the error has the position and the reason.
func TestParse_SaysWhereAndWhat(t *testing.T) {
	one := "controllers: [{name: a, module: a.wasm}]\n"
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "dir/c.yaml: the file is empty"},
		{"no mapping", "- a\n", "dir/c.yaml:1:1: want a mapping"},
		{"two documents", head + one + "---\n" + head, "too many documents"},
		{"no YAML", "a: [", "dir/c.yaml: line 1"},
		{"version", "apiVersion: wasmctl.dev/v2\nkind: Controllers\n" + one, `dir/c.yaml:1:13: apiVersion: "wasmctl.dev/v2": want wasmctl.dev/v1`},
		{"no kind", "apiVersion: wasmctl.dev/v1\n" + one, "kind: is missing: want kind: Controllers"},
		{"none", head, "controllers: is missing"},
		{"no list", head + "controllers: {}\n", "dir/c.yaml:3:14: controllers: want a list"},
		{"empty list", head + "controllers: []\n", "controllers: is empty"},
		{"misspelled", head + "contollers: []\n", "dir/c.yaml:3:1: contollers: unknown key; did you mean controllers?"},
		{"misspelled field", head + "controllers:\n- {name: a, module: b, limts: {}}\n", "dir/c.yaml:4:24: limts: unknown key; did you mean limits?"},
		{"misspelled field of a field", head + "controllers:\n- {name: a, module: {fil: b}}\n", "dir/c.yaml:4:22: fil: unknown key; did you mean file?"},
		{"former key", head + "controllers:\n- {name: a, module: b, timeout: 1s}\n", "dir/c.yaml:4:24: timeout: unknown key; did you mean limits.timeout?"},
		{"former key that is another now", head + "controllers:\n- {name: a, module: b, grant: g.yaml}\n", "dir/c.yaml:4:24: grant: unknown key; did you mean grantFile?"},
		{"field of a Reconciler alone", head + "controllers:\n- {name: a, module: {configMapKeyRef: {}}}\n", "configMapKeyRef: unknown key"},
		{"flag of the process", head + "controllers:\n- {name: a, module: b, workers: 1}\n", "workers: unknown key; want one of concurrency, config"},
		{"flag as on the command line", head + "controllers:\n- {name: a, module: b, config-file: x}\n", "did you mean configFile?"},
		{"no number", head + one + "process: {workers: many}\n", `dir/c.yaml:4:20: workers: "many": want a whole number`},
		{"no truth", head + one + "process: {dev: perhaps}\n", `dev: "perhaps": want true or false`},
		{"no whole number", head + one + "defaults: {concurrency: 1.5}\n", `concurrency: "1.5": want a whole number`},
		{"no share", head + one + "defaults: {rollout: {canary: {percent: 200}}}\n", "rollout.canary.percent: share"},
		{"list for a value", head + one + "defaults: {limits: {timeout: [1s]}}\n", "limits.timeout: want one value"},
		{"nothing for a value", head + one + "defaults: {limits: {timeout: }}\n", "limits.timeout: want one value"},
		{"map for a list", head + one + "defaults: {namespaces: {a: b}}\n", "namespaces: want a list"},
		{"value for a map", head + one + "defaults: {config: a=b}\n", "config: want a mapping"},
		{"deep map", head + one + "defaults: {config: {a: {b: c}}}\n", "config.a: want one value"},
		{"name for all", head + one + "defaults: {name: a}\n", "name: unknown key"},
		{"twice", head + one + "process: {dev: true, dev: false}\n", "dev: appears twice"},
		{"same name", head + "controllers:\n- {name: a, module: b}\n- {name: a, module: c}\n", `dir/c.yaml:5:3: name: "a" is also the name of the controller in line 4`},
		{"no name", head + "controllers:\n- {module: b}\n", "name: is missing"},
		{"no module", head + "controllers:\n- {name: b}\n", "module: is missing"},
		{"merge", head + "defaults: &d {owns: [a]}\ncontrollers:\n- {name: b, module: c, <<: *d}\n", "<<: merge keys are not supported"},
		{"no variable", head + "controllers:\n- {name: b, module: \"${NOPE}\"}\n", "module: environment variable NOPE is not set"},
		{"open brace", head + "controllers:\n- {name: b, module: \"${NOPE\"}\n", "closing brace"},
		{"no name of a variable", head + "controllers:\n- {name: b, module: \"${a b}\"}\n", "want ${NAME}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, c.content, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error:\n%v\nwant %q", err, c.want)
			}
		})
	}
}

func TestParse_SaysEverythingThatIsWrong(t *testing.T) {
	_, err := parse(t, head+"process: {workers: x}\ncontrollers:\n- {name: a, modul: b}\n- {name: a, module: b, concurrency: y}\n", nil)
	if n := strings.Count(err.Error(), "dir/c.yaml:"); n < 3 {
		t.Errorf("%d things: %v", n, err)
	}
}

func TestEqual_SeesEachChange(t *testing.T) {
	base := func() *Controller {
		return &Controller{Spec: v1alpha1.ControllerSpec{Name: "a", Module: v1alpha1.ModuleOf("m"), Namespaces: []string{"x"}}, Line: 1}
	}
	same := base()
	if same.Line = 9; !same.Equal(base()) {
		t.Error("a controller that moved within the file is another one")
	}
	for name, change := range map[string]func(*Controller){
		"module": func(c *Controller) { c.Spec.Module.File = "n" }, "value": func(c *Controller) { c.Spec.Namespaces[0] = "y" },
		"more": func(c *Controller) { c.Spec.Memo = "memory" },
	} {
		c := base()
		if change(c); c.Equal(base()) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// FuzzParse checks that Parse does not panic, and that it returns either a file or an error.
func FuzzParse(f *testing.F) {
	f.Add(head + "controllers: [{name: a, module: ${X:-y}, owns: [b], config: {a: 1}}]\n")
	f.Add("a: &a [*a]\n")
	f.Add(head + "defaults: &d {owns: *d, rollout: {canary: {percent: 1%}}}\n")
	f.Fuzz(func(t *testing.T, content string) {
		file, err := Parse("f", []byte(content), testFormat(&reported{}), func(string) (string, bool) { return "v", true })
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
	})
}

// TestFormat_ReadsBackTheSame: Parse returns the same file from the output of Format, also for values
// that YAML or Parse could interpret.
func TestFormat_ReadsBackTheSame(t *testing.T) {
	format := testFormat(&reported{})
	a := v1alpha1.ControllerSpec{Name: "a", Module: v1alpha1.ModuleOf("/modules/a.wasm"), Namespaces: []string{"x", "true", "1"}}
	a.Limits, a.For, a.Concurrency = v1alpha1.Limits{"timeout": intstr.FromString("1m0s")}, v1alpha1.KindOf("cm"), new(int32(3))
	a.Config = v1alpha1.Config{"12": "x", "dollar": "${HOME} $$", "empty": "", "eq": "a=b", "lines": "a\nb", "quote": "\"'", "true": "no"}
	b := v1alpha1.ControllerSpec{Name: "b", Module: v1alpha1.ModuleOf("oci://h/r:1")}
	b.Rollout, b.Grant = &v1alpha1.Rollout{Canary: &v1alpha1.Canary{Percent: 0.5}}, &v1alpha1.Grant{Manifest: true}
	want := &File{Process: Values{"workers": {"3"}, "dev": {"true"}}, Controllers: []Controller{{Spec: a}, {Spec: b}}}
	text, err := want.Format(format.Process)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("c.yaml", text, format, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for i := range got.Controllers {
		got.Controllers[i] = Controller{Spec: got.Controllers[i].Spec}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Controller{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s\nfrom\n%s", diff, text)
	}
}

// TestParse_BoundsAtTheirEdges: a list at its bound is accepted, and one entry more is an error with its
// position.
func TestParse_BoundsAtTheirEdges(t *testing.T) {
	controllers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "- {name: c%d, module: m.wasm}\n", i)
		}
		return head + "controllers:\n" + b.String()
	}
	with := func(key string, n int) string {
		return head + "controllers:\n- {name: a, module: m.wasm, " + key + ": [" + strings.TrimSuffix(strings.Repeat("x,", n), ",") + "]}\n"
	}
	config := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "    k%d: v\n", i)
		}
		return head + "controllers:\n- name: a\n  module: m.wasm\n  config:\n" + b.String()
	}
	for want, text := range map[string][2]string{
		"c.yaml:4:1: controllers: has 1001 entries, the limit is 1000": {controllers(MaxControllers), controllers(MaxControllers + 1)},
		"c.yaml:4:35: owns: has 201 entries, the limit is 200":         {with("owns", MaxList), with("owns", MaxList+1)},
		"c.yaml:4:41: namespaces: has 201 entries, the limit is 200":   {with("namespaces", MaxList), with("namespaces", MaxList+1)},
		"c.yaml:7:5: config: has 201 entries, the limit is 200":        {config(MaxList), config(MaxList + 1)},
	} {
		if _, err := parse(t, text[0], nil); err != nil {
			t.Errorf("%s: at the bound: %v", want, err)
		}
		if _, err := parse(t, text[1], nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
