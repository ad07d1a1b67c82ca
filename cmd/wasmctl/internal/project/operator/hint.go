// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// hint returns advice about rights that the manifest lacks. It is empty if the sources show no
// missing right.
func (p *Project) hint(asked []abi.Capability, refused []string) string {
	switch {
	case len(refused) > 0:
		return fmt.Sprintf(`rules for all groups are not in the manifest, which names each group: %s
Write those that it needs to a file, and name it by --roles (key roles of wasmctl.yaml). For example:
  kind: ClusterRole
  rules:
  - {apiGroups: [apps], resources: [deployments], verbs: [get, list, create, update, patch, delete]}`, strings.Join(refused, ", "))
	case len(asked) > 0:
		return ""
	}
	files := p.roleFiles()
	if len(files) == 0 {
		return "no rights: there are no +kubebuilder:rbac markers, and no config/rbac/role.yaml; name a file with its roles by --roles (key roles of wasmctl.yaml)"
	}
	return "no rights: there are no +kubebuilder:rbac markers, and no config/rbac/role.yaml; name its roles (key roles of wasmctl.yaml):\n  " + strings.Join(files, "\n  ")
}

var (
	isRole = regexp.MustCompile(`(?m)^kind:\s*["']?(Cluster)?Role["']?\s*$`)
	// notDeployed matches folders with roles that are not part of the deployment.
	notDeployed = regexp.MustCompile(`^(\..+|_.+|vendor|node_modules|tests?|testdata|e2e.*|examples?|samples?|docs?|hack)$`)
)

// maxRoleFiles is the maximum number of files in a hint.
const maxRoleFiles = 8

// roleFiles returns commands that name the project's files with roles. For the templates of a
// chart, helm must print them first.
func (p *Project) roleFiles() (ways []string) {
	_ = filepath.WalkDir(p.Root, func(path string, d fs.DirEntry, err error) error { // a folder that cannot be read has no roles
		switch {
		case err != nil || len(ways) >= maxRoleFiles:
			return nil //nolint:nilerr // see above
		case d.IsDir() && path != p.Root && notDeployed.MatchString(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !isRole.Match(text) {
			return nil //nolint:nilerr // see above
		}
		way := "wasmctl build --roles " + p.relative(path)
		if chart := p.chartOf(path); chart != "" {
			way = fmt.Sprintf("helm template %s %s > roles.yaml && wasmctl build --roles roles.yaml", p.Name(), p.relative(chart))
		}
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
		return nil
	})
	return ways
}

// chartOf returns the folder of the Helm chart with a file. It is empty if the file is not in a
// chart.
func (p *Project) chartOf(file string) string {
	for dir := filepath.Dir(file); len(dir) >= len(p.Root); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "Chart.yaml")); err == nil {
			return dir
		}
	}
	return ""
}

func (p *Project) relative(path string) string {
	if rel, err := filepath.Rel(p.Root, path); err == nil {
		return rel
	}
	return path
}
