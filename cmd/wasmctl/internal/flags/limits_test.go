package flags

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

func TestLimitFlags_SetTheLimits(t *testing.T) {
	named := []string{"--limit", "host_calls=5k,api_rate=50", "--limit", "result_bytes=64Ki"}
	if got, want := optionsFor(t, named...).Limits, (host.Limits{HostCalls: 5000, APIRate: 50, ResultBytes: 64 << 10}); got != want {
		t.Errorf("got %+v", got)
	}
	if l := optionsFor(t, append(named, "--memory", "1Mi", "--timeout", "7ns")...).Limits; l.Memory != 1<<20 || l.Timeout != 7 || l.APIRate != 50 {
		t.Errorf("together with the other flags: %+v", l)
	}
}

// Each limit of a manifest can be set by a flag, and each wrong value is named.
func TestLimitFlags_EachNameAndMistakes(t *testing.T) {
	for _, name := range abi.LimitNames {
		_, err := controllerFlags(t, "--limit", string(name)+"=1")
		if own := strings.Contains(string(name), "memory") || name == abi.LimitTimeout || name == abi.LimitFuel; (err != nil) != own {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := controllerFlags(t, "--limit", "speed=1,events=0,log_lines=x,stack=1Gi,memory=1Mi")
	for _, want := range []string{`--limit "speed": want one of host_calls,`, "--limit events=0: want a number", "--limit log_lines=x: want a number", "stack", "--limit memory: use the flag --memory"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %s", err, want)
		}
	}
}

// limitRow is a row of docs/limits.md: name, what, default, flag, what comes
// beyond, test.
var limitRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]+\\| ([^|]+) \\| `--([a-z]+)` \\|[^|]+\\| Test\\w+ \\|$")

// TestLimits_ThePageIsTrue: docs/limits.md has each limit that a manifest can
// lower, with the default that holds, the flag that takes it and a test, in the
// order of abi.LimitNames.
func TestLimits_ThePageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[abi.LimitName][]string{}
	for _, row := range limitRow.FindAllStringSubmatch(string(page), -1) {
		rows[abi.LimitName(row[1])] = row[2:]
	}
	if len(rows) != len(abi.LimitNames) {
		t.Errorf("the page has %d limits, and there are %d", len(rows), len(abi.LimitNames))
	}
	flags, _, _ := Sets()
	defaults := host.Config{}.LimitsFor(&abi.Manifest{})
	for _, name := range abi.LimitNames {
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s has no row", name)
			continue
		}
		if got, want := standing(row[0]), defaults.Get(name); got != want {
			t.Errorf("%s: the page says %q, and the default is %d", name, row[0], want)
		}
		want := "limit"
		if slices.Contains(ownFlag, name) {
			want = string(name)
		}
		if row[1] != want || flags.Controller.Lookup(row[1]) == nil {
			t.Errorf("%s: the page says --%s, want --%s", name, row[1], want)
		}
	}
}

// listRow is a row of the table of lists: list, where, entries, test.
var listRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (manifest|grant|manifest, grant|controllers file) \| ([0-9,]+) \| Test\w+ \|$`)

// TestLists_ThePageIsTrue: docs/limits.md has each bound of a list, and no other.
func TestLists_ThePageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"rights of all capabilities, manifest": abi.MaxRights, "fields of all capabilities, manifest": abi.MaxFields,
		"`owns` and `watches` together, manifest": abi.MaxWatches,
		"documents, grant":                        grant.MaxDocuments, "capabilities of all documents, grant": grant.MaxRules,
		"rights of all documents, grant": grant.MaxRights, "fields of all documents, grant": grant.MaxFields,
		"`finalizers` of a document, grant": grant.MaxFinalizers, "`digest` of a document, grant": grant.MaxDigests,
		"`controllers`, controllers file": runfile.MaxControllers, "each list or mapping of a key, controllers file": runfile.MaxList,
	}
	for _, b := range abi.ManifestBounds {
		where := "manifest"
		if strings.HasPrefix(b.Name, "capabilities.") {
			where += ", grant"
		}
		want["`"+b.Name+"`, "+where] = b.Max
	}
	got := map[string]int{}
	for _, row := range listRow.FindAllStringSubmatch(string(page), -1) {
		got[row[1]+", "+row[2]], _ = strconv.Atoi(strings.ReplaceAll(row[3], ",", ""))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/limits.md (-code +page):\n%s", diff)
	}
}

// standing reads a default as the page writes it; 0 is not bounded.
func standing(text string) int64 {
	switch {
	case strings.HasPrefix(text, "not bounded"):
		return 0
	case text == "half of `memory`":
		return host.DefaultMemory / 2
	}
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	q, err := resource.ParseQuantity(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		return -1
	}
	return q.Value()
}
