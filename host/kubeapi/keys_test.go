// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestKeys_AreThoseOfTheABI compares the table in code with the normative one.
func TestKeys_AreThoseOfTheABI(t *testing.T) {
	page, err := os.ReadFile("../../abi/ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| Key | Type | get | list |")
	if !found {
		t.Fatal("ABI.md has no table of request keys any longer")
	}
	want := map[string]map[abi.Op]string{}
	name := regexp.MustCompile("`([A-Za-z]+)`")
	for line := range strings.Lines(table[strings.Index(table, "\n|--")+1:]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2+len(allOps) {
			if strings.HasPrefix(line, "|--") {
				continue
			}
			break
		}
		for _, m := range name.FindAllStringSubmatch(cells[0], -1) {
			want[m[1]] = map[abi.Op]string{}
			for i, op := range allOps {
				want[m[1]][op] = strings.TrimSpace(cells[2+i])
			}
		}
	}
	for _, key := range []string{"apiVersion", "kind", "namespace"} {
		if want[key] == nil {
			t.Errorf("%s is not in the table of ABI.md: the test cannot read it", key)
		}
		delete(want, key)
	}
	if len(want) != len(requestKeys) {
		t.Errorf("ABI.md has %d keys, the code %d", len(want), len(requestKeys))
	}
	for _, k := range requestKeys {
		for _, op := range allOps {
			mark := want[k.name][op]
			if got := slices.Contains(k.ops, op); got != (mark != "") {
				t.Errorf("%s of %s: taken %v, ABI.md says %q", k.name, op, got, mark)
			}
			if got := slices.Contains(k.required, op); got != (mark == "r") {
				t.Errorf("%s of %s: needed %v, ABI.md says %q", k.name, op, got, mark)
			}
		}
	}
}

// fullRequest has every key of the ABI with a value that is not zero.
func fullRequest() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "subresource": "status",
		"object": map[string]any{"apiVersion": "v1"}, "patch": map[string]any{}, "patchType": "merge", "dryRun": true,
		"fieldManager": "m", "fieldValidation": "Strict", "force": true, "preconditions": map[string]any{"uid": "u"},
		"propagationPolicy": "Foreground", "gracePeriodSeconds": 0, "labelSelector": "a=b", "fieldSelector": "a=b", "owner": "u", "index": "i",
		"value": "v", "entries": []any{map[string]any{"name": "n"}},
		"limit": 5, "continue": "c", "resourceVersion": "1", "resourceVersionMatch": "Exact",
	}
}

func TestDecode_NamesEveryWrongKey(t *testing.T) {
	for _, op := range allOps {
		_, err := (&request{op: op}).decode(msg(t, fullRequest()))
		if err == nil {
			t.Fatalf("%s: took every key", op)
		}
		for _, k := range requestKeys {
			said := strings.Contains(err.Error(), k.name+" is not a key of "+string(op))
			if said == slices.Contains(k.ops, op) {
				t.Errorf("%s: key %s: refused %v: %v", op, k.name, said, err)
			}
		}
		right := fullRequest()
		for _, k := range requestKeys {
			if !slices.Contains(k.ops, op) {
				delete(right, k.name)
			}
		}
		if unknown, err := (&request{op: op}).decode(msg(t, right)); err != nil || len(unknown) > 0 {
			t.Errorf("%s: with all its keys: %v, unknown %v", op, err, unknown)
		}
		for _, k := range requestKeys {
			if !slices.Contains(k.required, op) {
				continue
			}
			value := right[k.name]
			for _, absent := range []any{nil, "absent"} {
				if right[k.name] = nil; absent != nil {
					delete(right, k.name)
				}
				if _, err := (&request{op: op}).decode(msg(t, right)); err == nil || !strings.Contains(err.Error(), k.name+" is needed by "+string(op)) {
					t.Errorf("%s without %s: %v", op, k.name, err)
				}
			}
			right[k.name] = value
		}
	}
}
