// SPDX-License-Identifier: Apache-2.0

package project

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// TestRequests_OfTheProjectFile: each controller requests the limits and rights of the project. Its own limits
// override those of the project, and these override those of the program.
func TestRequests_OfTheProjectFile(t *testing.T) {
	dir := write(t, "p", map[string]string{FileName: "limits: {timeout: 2m, memory: 64Mi}\ncontrollers: {widget: {limits: {timeout: 5m, api_rate: 10}}}\n"})
	file, err := readFile(dir)
	if err != nil || file.timeout() != 5*time.Minute {
		t.Fatal(file.timeout(), err)
	}
	r := requests{file, []abi.Capability{{Resource: "pods", Verbs: []string{"get"}}}}
	all := []*abi.Manifest{{Name: "gadget", Limits: &abi.Limits{Stack: 1 << 20, Memory: 1}}, {Name: "widget"}}
	if err := r.addTo(all); err != nil {
		t.Fatal(err)
	}
	want := []*abi.Manifest{
		{Name: "gadget", Capabilities: r.rights, Limits: &abi.Limits{Stack: 1 << 20, Memory: 64 << 20, Timeout: 120_000}},
		{Name: "widget", Capabilities: r.rights, Limits: &abi.Limits{Memory: 64 << 20, Timeout: 300_000, APIRate: 10}},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v %+v", all[0], all[1])
	}
	if err := r.addTo(all[:1]); err == nil || !strings.Contains(err.Error(), "no controller widget; it has gadget") {
		t.Errorf("a missing controller: %v", err)
	}
	if (requests{}).isZero() == r.isZero() {
		t.Error("isZero")
	}
}

// TestReadFile_RefusesLimitsThatAManifestCannotHave: with their paths.
func TestReadFile_RefusesLimitsThatAManifestCannotHave(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {timeout: soon}\n":                      "limits.timeout",
		"limits: {fuel-rate: 1G}\n":                      "only the host",
		"limits: {events: 1}\n":                          "this limit is fixed",
		"controllers: {web: {limits: {memory: 1}}}\n":    "controllers[web].limits.memory",
		"controllers: {web: {limits: {fuel-rate: 1}}}\n": "only the host",
		"controllers: {web: {timeout: 1m}}\n":            "timeout",
	} {
		if _, err := readFile(write(t, "p", map[string]string{FileName: text})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
