// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"strings"
	"testing"
)

// TestParse_BoundsAtTheirEdges: a file with as much as it may have is read, and
// one with more is refused, with the line and the limit.
func TestParse_BoundsAtTheirEdges(t *testing.T) {
	const head = "apiVersion: wasmctl.dev/v1\nkind: Grant\n"
	words := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("x,", n), ",") + "]" }
	rules := func(n int, rule string) string {
		return head + "capabilities:\n" + strings.Repeat("- {resource: pods, "+rule+"}\n", n)
	}
	digests := func(n int) string { return strings.ReplaceAll(words(n), "x", digestA) }
	one := func(rule string) string { return rules(1, rule) }
	for want, text := range map[string][2]string{
		"g.yaml:4:26: names: has 201 entries, the limit is 200":          {one("verbs: [get], names: " + words(200)), head + "capabilities:\n- {verbs: [get], names:  " + words(201) + ", resource: a}\n"},
		"namespaces: has 201 entries, the limit is 200":                  {one("verbs: [get], namespaces: " + words(200)), one("verbs: [get], namespaces: " + words(201))},
		"fields: has 101 entries, the limit is 100":                      {one("verbs: [get], fields: " + words(100)), one("verbs: [get], fields: " + words(101))},
		"fields: a pattern is 513 bytes long, the limit is 512":          {one("verbs: [get], fields: [" + strings.Repeat("f", 512) + "]"), one("verbs: [get], fields: [" + strings.Repeat("f", 513) + "]")},
		"capabilities: has 1001 entries, the limit is 1000":              {rules(1000, "verbs: [get]"), rules(1001, "verbs: [get]")},
		"g.yaml:1008:3: capabilities: the file has more than 1000 rules": {rules(1000, "verbs: [get]"), rules(1, "verbs: [get]") + "---\n" + rules(1000, "verbs: [get]")},
		"g.yaml:6:3: capabilities: the file has more than 20000 rights":  {rules(2, fmt.Sprintf("verbs: [get], names: %s, namespaces: %s", words(100), words(100))), rules(3, fmt.Sprintf("verbs: [get], names: %s, namespaces: %s", words(100), words(100)))},
		"g.yaml:24:3: capabilities: the file has more than 2000 fields":  {rules(20, "verbs: [get], fields: "+words(100)), rules(21, "verbs: [get], fields: "+words(100))},
		"finalizers: has 21 entries, the limit is 20":                    {head + "finalizers: " + words(20) + "\ncapabilities: []", head + "finalizers: " + words(21) + "\ncapabilities: []"},
		"digests: has 21 entries, the limit is 20":                       {head + "digests: " + digests(20) + "\ncapabilities: []", head + "digests: " + digests(21) + "\ncapabilities: []"},
		"too many documents: want at most 1000":                          {strings.Repeat(head+"capabilities: []\n---\n", 1000), strings.Repeat(head+"capabilities: []\n---\n", 1001)},
	} {
		if _, err := Parse("g.yaml", []byte(text[0])); err != nil {
			t.Errorf("%s: at the bound: %v", want, err)
		}
		if _, err := Parse("g.yaml", []byte(text[1])); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
