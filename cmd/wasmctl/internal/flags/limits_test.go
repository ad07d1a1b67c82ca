// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/share"
)

// TestLimitFlags_EachNameAndMistakes: a flag can set each limit of a manifest, and errors name each
// wrong value.
func TestLimitFlags_EachNameAndMistakes(t *testing.T) {
	for _, name := range abi.LimitNames {
		text := map[abi.LimitName]string{abi.LimitMemory: "1Mi", abi.LimitTimeout: "7ns"}[name]
		s, err := parsed(t, "--limit", string(name)+"="+cmp.Or(text, "5k"))
		if limits, errs := s.Limits.Parse(nil); err != nil || len(errs) > 0 || limits[string(name)] == 0 {
			t.Errorf("%s: %v: %v, %v", name, limits, err, errs)
		}
	}
	_, err := parsed(t, "--limit", "speed=1,event_rate=0,log_lines=x,stack=1Gi", "--memory", "12", "--fuel", "0")
	for _, want := range []string{
		`--limit "speed": want one of fuel-rate,`, `--limit event_rate "0": want a number`, `--limit log_lines "x": want a number`, `--limit stack "1Gi": want at most`,
		`--memory "12": want a size of at least 64Ki`, `--fuel "0": want a number of units`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %s", err, want)
		}
	}
}

// TestFixedLimits_AreRefused: a flag with a fixed limit is refused with the reason.
func TestFixedLimits_AreRefused(t *testing.T) {
	for _, name := range abi.FixedLimits {
		_, err := parsed(t, "--limit", string(name)+"=100")
		if want := fmt.Sprintf(`--limit %q: %s`, name, abi.FixedText); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// limitRow matches a row of docs/limits.md: name, description, value, flag if it can be set, effect.
var limitRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]+\\| ([^|]+) \\| (?:`--([a-z]+)` \\|)?[^|]+\\|$")

// TestLimits_ThePageIsTrue: docs/limits.md has each limit, with its value, and with its flag if it can be set.
// docs/properties.md names the test of each one.
func TestLimits_ThePageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	properties, err := os.ReadFile("../../../../docs/properties.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tests, _ := strings.Cut(string(properties), "\n## Limits")
	rows := map[abi.LimitName][]string{}
	for _, row := range limitRow.FindAllStringSubmatch(string(page), -1) {
		rows[abi.LimitName(row[1])] = row[2:]
	}
	names := slices.Concat(abi.LimitNames, abi.FixedLimits)
	if len(rows) != len(names) {
		t.Errorf("the page has %d limits, and there are %d", len(rows), len(names))
	}
	defaults := host.Config{}.LimitsFor(&abi.Manifest{})
	values := map[abi.LimitName]int64{
		abi.LimitAPIInFlight: kubeapi.MaxInFlight, abi.LimitListItems: kubeapi.MaxListItems, abi.LimitListBytes: abi.MaxBytes,
		abi.LimitInstanceCalls: share.InstanceCalls, abi.LimitHighWater: defaults.HighWater(),
	}
	for _, name := range names {
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s has no row", name)
			continue
		}
		if !strings.Contains(tests, "`"+string(name)+"`") {
			t.Errorf("docs/properties.md names no test of %s", name)
		}
		if got, want := standing(row[0]), cmp.Or(values[name], defaults.Get(name)); got != want {
			t.Errorf("%s: the page says %q, and the default is %d", name, row[0], want)
		}
		want := ""
		if !slices.Contains(abi.FixedLimits, name) {
			flag, _ := FlagOf("limits." + string(name))
			want = strings.TrimPrefix(flag, "--")
		}
		if row[1] != want {
			t.Errorf("%s: the page says --%s, want --%s", name, row[1], want)
		}
	}
}

// listRow matches a row of the table of lists: list, document, entries.
var listRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (manifest|grant|manifest, grant|controllers file) \| ([0-9,]+) \|$`)

// TestLists_ThePageIsTrue: docs/limits.md has each bound of a list, and no others.
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
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("docs/limits.md (-code +page):\n%s", diff)
	}
}

// standing parses a default in the form of the page. It returns 0 for no limit.
func standing(text string) int64 {
	switch {
	case strings.HasPrefix(text, "not bounded"):
		return 0
	case text == "half of `memory`":
		return share.DefaultMemory / 2
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
