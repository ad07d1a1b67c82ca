// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
)

// TestConversions_AreHubsAndSpokes of each kind, with any receiver. Kinds of two groups may have one name.
func TestConversions_AreHubsAndSpokes(t *testing.T) {
	root, list := t.TempDir(), []map[string]any{}
	for dir, src := range map[string]string{
		"api/v1":        "func (*CronJob) Hub() {}\n\n// func (*Comment) Hub() {}\n",
		"api/v2":        "func (src *CronJob) ConvertTo(dstRaw conversion.Hub) error {\n",
		"api/v1beta1":   "func (c CronJob) ConvertTo(h Hub) error {\n",
		"api/other/v1":  "func (*CronJob) Hub() {}\n",
		"internal/none": "func (h *hubs) Hub(x int) {}\nfunc ConvertTo() {}\n",
	} {
		write(t, filepath.Join(root, dir, "conversion.go"), "package x\n\n"+src)
		list = append(list, map[string]any{"Dir": filepath.Join(root, dir), "GoFiles": []string{"conversion.go"}, "Module": map[string]any{"Main": true}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var packages []pkg
	if err := json.Unmarshal(text, &packages); err != nil {
		t.Fatal(err)
	}
	got, err := conversions(packages)
	for i := range got {
		got[i].dir = ""
	}
	want := []Conversion{{Kind: "CronJob", Hub: "v1", Spokes: []string{"v1beta1", "v2"}}, {Kind: "CronJob", Hub: "v1"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Error(fmt.Sprintf("%+v", got), err)
	}
}
