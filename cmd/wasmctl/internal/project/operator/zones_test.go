// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestAnyMatches_InTheProgramAndWhatItIsMadeOf: as the library of cron schedules
// does. What Kubernetes' libraries have does not count: no module uses it.
func TestAnyMatches_InTheProgramAndWhatItIsMadeOf(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.go"), "package a\n\nimport \"time\"\n\nvar l, _ = time.LoadLocation(\"Europe/Berlin\")\n")
	write(t, filepath.Join(dir, "b.go"), "package a\n\nvar s = sum(set.Spec.WorkerTemplate.String())\n")
	for _, c := range []struct {
		module, file string
		want         bool
	}{
		{"example.com/op", "a.go", true},
		{"example.com/op", "b.go", false},
		{"k8s.io/api", "a.go", false},
	} {
		var p pkg
		if err := json.Unmarshal([]byte(`{"Module":{"Path":"`+c.module+`"}}`), &p); err != nil {
			t.Fatal(err)
		}
		p.Dir, p.GoFiles = dir, []string{c.file}
		if got, err := anyMatches([]pkg{{Standard: true}, p}, zoneByName); got != c.want || err != nil {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}
