package runfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// reported is what the flags of the tests set.
type reported struct {
	workers int
	dev     bool
	config  map[string]string
	owns    []string
	spaces  []string
	name    string
	timeout time.Duration
	file    string
}

func testFlags(o *reported) Flags {
	process, controller := &cobra.Command{}, &cobra.Command{}
	process.Flags().IntVar(&o.workers, "workers", 0, "how many")
	process.Flags().BoolVar(&o.dev, "dev", false, "whether")
	f := controller.Flags()
	f.StringVar(&o.name, "name", "", "")
	f.StringToStringVar(&o.config, "config", nil, "")
	f.StringArrayVar(&o.owns, "owns", []string{"default"}, "")
	f.StringSliceVar(&o.spaces, "namespace", nil, "")
	f.DurationVar(&o.timeout, "timeout", 0, "")
	f.StringVar(&o.file, "config-file", "", "")
	_ = controller.MarkFlagFilename("config-file")
	return Flags{process.Flags(), f}
}

func parse(t *testing.T, content string, env map[string]string) (*File, error) {
	t.Helper()
	return Parse("dir/c.yaml", []byte(content), testFlags(&reported{}), func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

const head = "apiVersion: wasmctl.dev/v1\nkind: Controllers\n"

func TestParse_SaysWhateverTheFlagsCan(t *testing.T) {
	f, err := parse(t, head+`
process: {workers: "${N}", dev: true}
defaults: &d
  timeout: 10s
  owns: [cm]
controllers:
- name: a
  module: a.wasm
  config: {greeting: "hello, ${WHO:-you}", equation: "a=b,c", n: 3, dollar: $$HOME, plain: 1$}
- name: b
  module: /abs/b.wasm
  timeout: 5s
  owns: [cm, "Secret,odd"]
  namespace: one
  configFile: conf/b.yaml
`, map[string]string{"N": "7"})
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Process: Values{"workers": {"7"}, "dev": {"true"}},
		Controllers: []Controller{
			{Name: "a", Module: "dir/a.wasm", Line: 9, Values: Values{
				"name": {"a"}, "timeout": {"10s"}, "owns": {"cm"},
				"config": {"dollar=$HOME", "equation=a=b,c", "greeting=hello, you", "n=3", "plain=1$"},
			}},
			{Name: "b", Module: "/abs/b.wasm", Line: 12, Values: Values{
				"name": {"b"}, "timeout": {"5s"}, "owns": {"cm", "Secret,odd"}, "namespace": {"one"}, "config-file": {"dir/conf/b.yaml"},
			}},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Fatalf("file (-want +got):\n%s", diff)
	}
	var o reported
	for _, c := range []*Controller{&f.Controllers[0], &f.Controllers[1]} {
		o = reported{}
		if err := c.Values.Apply(testFlags(&o).Controller); err != nil {
			t.Fatal(err)
		}
		if c.Name == "a" && o.config["equation"] != "a=b,c" {
			t.Errorf("config: %q", o.config)
		}
	}
	if !cmp.Equal(o.owns, []string{"cm", "Secret,odd"}) || o.timeout != 5*time.Second || !cmp.Equal(o.spaces, []string{"one"}) {
		t.Errorf("flags: %+v", o)
	}
}

func TestApply_TheCommandLineWins(t *testing.T) {
	var o reported
	f := testFlags(&o).Process
	if err := f.Set("workers", "3"); err != nil {
		t.Fatal(err)
	}
	if err := (Values{"workers": {"9"}, "dev": {"true"}}).Apply(f); err != nil {
		t.Fatal(err)
	}
	if o.workers != 3 || !o.dev {
		t.Errorf("workers %d, dev %v", o.workers, o.dev)
	}
}

// TestParse_SaysWhereAndWhat is about everything that may be wrong with a file.
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
		{"misspelled flag", head + "controllers:\n- {name: a, module: b, timout: 1s}\n", "dir/c.yaml:4:24: timout: unknown key; did you mean timeout?"},
		{"flag of the process", head + "controllers:\n- {name: a, module: b, workers: 1}\n", "workers: unknown key; want one of config, configFile"},
		{"flag as on the command line", head + "controllers:\n- {name: a, module: b, config-file: x}\n", "did you mean configFile?"},
		{"no number", head + one + "process: {workers: many}\n", `dir/c.yaml:4:20: workers: "many": want a whole number`},
		{"no truth", head + one + "process: {dev: perhaps}\n", `dev: "perhaps": want true or false`},
		{"no duration", head + one + "defaults: {timeout: 10}\n", `timeout: "10": want a duration`},
		{"list for a value", head + one + "defaults: {timeout: [1s]}\n", "timeout: want one value"},
		{"nothing for a value", head + one + "defaults: {timeout: }\n", "timeout: want one value"},
		{"map for a list", head + one + "defaults: {owns: {a: b}}\n", "owns: want a list"},
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
	_, err := parse(t, head+"process: {workers: x}\ncontrollers:\n- {name: a, modul: b}\n- {name: a, module: b, timeout: y}\n", nil)
	if n := strings.Count(err.Error(), "dir/c.yaml:"); n < 3 {
		t.Errorf("%d things: %v", n, err)
	}
}

func TestEqual_SeesEachChange(t *testing.T) {
	base := func() *Controller { return &Controller{Name: "a", Module: "m", Line: 1, Values: Values{"owns": {"x"}}} }
	same := base()
	if same.Line = 9; !same.Equal(base()) {
		t.Error("a controller that moved within the file is another one")
	}
	for name, change := range map[string]func(*Controller){
		"module": func(c *Controller) { c.Module = "n" }, "value": func(c *Controller) { c.Values["owns"][0] = "y" },
		"more": func(c *Controller) { c.Values["timeout"] = []string{"1s"} },
	} {
		c := base()
		if change(c); c.Equal(base()) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// FuzzParse holds that no file makes it panic, and that what is read can be
// applied.
func FuzzParse(f *testing.F) {
	f.Add(head + "controllers: [{name: a, module: ${X:-y}, owns: [b], config: {a: 1}}]\n")
	f.Add("a: &a [*a]\n")
	f.Add(head + "defaults: &d {owns: *d}\n")
	f.Fuzz(func(t *testing.T, content string) {
		file, err := Parse("f", []byte(content), testFlags(&reported{}), func(string) (string, bool) { return "v", true })
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
		if err != nil {
			return
		}
		for _, c := range file.Controllers {
			if err := c.Values.Apply(testFlags(&reported{}).Controller); err != nil {
				t.Errorf("what was read is not taken: %v", err)
			}
		}
	})
}

// TestFormat_ReadsBackTheSame, whatever is in the values.
func TestFormat_ReadsBackTheSame(t *testing.T) {
	flags := testFlags(&reported{})
	want := &File{
		Process: Values{"workers": {"3"}, "dev": {"true"}},
		Controllers: []Controller{
			{Name: "a", Module: "/modules/a.wasm", Values: Values{
				"name": {"a"}, "timeout": {"1m0s"}, "owns": {"cm", "true", "1"}, "config": {"12=x", "dollar=${HOME} $$", "empty=", "eq=a=b", "lines=a\nb", "quote=\"'", "true=no"},
			}},
			{Name: "b", Module: "/modules/b.wasm", Values: Values{"name": {"b"}, "namespace": {"x", "y"}}},
		},
	}
	b, err := want.Format(flags)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("c.yaml", b, flags, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	for i := range got.Controllers {
		got.Controllers[i].Line = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s\nfrom\n%s", diff, b)
	}
}

// TestParse_BoundsAtTheirEdges: each list of a file has a bound, told with its line.
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
		"c.yaml:4:40: namespace: has 201 entries, the limit is 200":    {with("namespace", MaxList), with("namespace", MaxList+1)},
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
