// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// writeOf describes a change of the cluster.
func writeOf(c *memapi.Change) Write {
	verb := "update"
	switch {
	case c.Old == nil:
		verb = "create"
	case c.New == nil, deleting(c.New) && !deleting(c.Old):
		verb = "delete"
	}
	w := Write{Write: verb + strings.TrimPrefix(c.Request.String(), c.Request.Verb)}
	if verb != "delete" || c.New != nil {
		w.Diff = objectDiff(c.Old, c.New)
	}
	return w
}

func deleting(object map[string]any) bool {
	return (&unstructured.Unstructured{Object: object}).GetDeletionTimestamp() != nil
}

// bookkeeping are fields that the API server maintains.
var bookkeeping = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "name", "namespace"}

// objectDiff returns a line for each value that only one of two objects has, ordered by path.
func objectDiff(before, after map[string]any) string {
	a, b := flatten(before), flatten(after)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var lines strings.Builder
	for _, path := range slices.SortedFunc(maps.Keys(all), comparePaths) {
		was, had := a[path]
		is, has := b[path]
		if had && has && was == is {
			continue
		}
		if had {
			fmt.Fprintf(&lines, "- %s: %s\n", path, was)
		}
		if has {
			fmt.Fprintf(&lines, "+ %s: %s\n", path, is)
		}
	}
	return lines.String()
}

// comparePaths sorts [10] after [9].
func comparePaths(a, b string) int {
	split := func(r rune) bool { return r == '[' || r == ']' }
	as, bs := strings.FieldsFunc(a, split), strings.FieldsFunc(b, split)
	for i := range min(len(as), len(bs)) {
		n, errA := strconv.Atoi(as[i])
		m, errB := strconv.Atoi(bs[i])
		if errA == nil && errB == nil && n != m {
			return n - m
		}
		if as[i] != bs[i] {
			return strings.Compare(as[i], bs[i])
		}
	}
	return len(as) - len(bs)
}

// flatten returns the values of an object by their paths, without the bookkeeping of the API
// server.
func flatten(object map[string]any) map[string]string {
	out := map[string]string{}
	for key, v := range object {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			meta, _ := v.(map[string]any)
			for key, v := range meta {
				if !slices.Contains(bookkeeping, key) {
					flattenInto(out, "metadata"+step(key), v)
				}
			}
		default:
			flattenInto(out, strings.TrimPrefix(step(key), "."), v)
		}
	}
	return out
}

func flattenInto(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			out[path] = "{}"
		}
		for key, e := range v {
			flattenInto(out, path+step(key), e)
		}
	case []any:
		if len(v) == 0 {
			out[path] = "[]"
		}
		for i, e := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			if owner, ok := e.(map[string]any); ok && path == "metadata.ownerReferences" {
				out[at] = ownerText(owner)
				continue
			}
			flattenInto(out, at, e)
		}
	default:
		out[path] = scalar(v)
	}
}

// ownerText describes an owner reference without its UID, which the API server assigns.
func ownerText(owner map[string]any) string {
	role := "owner"
	if owner["controller"] == true {
		role = "controller"
	}
	return fmt.Sprintf("%s %v %v", role, owner["kind"], owner["name"])
}

// step returns one key of a path.
func step(key string) string {
	if key == "" || strings.ContainsAny(key, ".[]/: ") {
		return "[" + key + "]"
	}
	return "." + key
}

// scalar writes a value in YAML, on one line.
func scalar(v any) string {
	if s, ok := v.(string); ok && strings.ContainsAny(s, "\n\r") {
		return strconv.Quote(s)
	}
	b, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(string(b))
}

// lineDiff compares two texts, line by line: "-" is missing, and "+" is additional.
func lineDiff(want, got []string) []string {
	// longest[i][j] is the length of the longest common part of want[i:] and got[j:].
	longest := make([][]int, len(want)+1)
	for i := range longest {
		longest[i] = make([]int, len(got)+1)
	}
	for i, w := range slices.Backward(want) {
		for j := len(got) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if w == got[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			out = append(out, "  "+want[i])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+want[i])
			i++
		default:
			out = append(out, "+ "+got[j])
			j++
		}
	}
	return out
}
