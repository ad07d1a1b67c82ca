package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	Module          *struct {
		Path, Dir string
		Main      bool
	}
}

// packages lists the packages of the program.
func (s *Stage) packages(ctx context.Context) ([]pkg, error) {
	var out bytes.Buffer
	if err := s.command(ctx, &out, "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Module", s.pkg); err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(&out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

const openAPI = "k8s.io/kube-openapi"

// usesOpenAPI reports whether the program itself uses kube-openapi, as types with
// generated definitions do: what stands in for it has not all packages.
func usesOpenAPI(packages []pkg) bool {
	return slices.ContainsFunc(packages, func(p pkg) bool {
		return strings.HasPrefix(p.ImportPath, openAPI+"/") && p.Dir == ""
	})
}

// ofProgram reports whether a package is the program's, or of one that it is made
// of, and not one of Kubernetes' libraries.
func (p *pkg) ofProgram() bool {
	if p.Standard || p.Module == nil {
		return false
	}
	return !strings.HasPrefix(p.Module.Path, "k8s.io/") && p.Module.Path != runtimePath && p.Module.Path != sdkPath
}

// rulesOf returns what the markers of the packages say; without any, what the
// role says that controller-gen made of them.
func rulesOf(root string, packages []pkg) ([]rule, error) {
	var all []rule
	for i := range packages {
		if !packages[i].ofProgram() {
			continue
		}
		for _, name := range packages[i].GoFiles {
			file := filepath.Join(packages[i].Dir, name)
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			rules, err := markers(file, src)
			if err != nil {
				return nil, err
			}
			all = append(all, rules...)
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return rulesOfRole(text)
}

// role is a Role or a ClusterRole.
type role struct {
	Metadata struct{ Namespace string }
	Rules    []struct {
		APIGroups     []string `json:"apiGroups"`
		Resources     []string `json:"resources"`
		ResourceNames []string `json:"resourceNames"`
		Verbs         []string `json:"verbs"`
	}
}

// rulesOfRole reads the roles of a file.
func rulesOfRole(text []byte) ([]rule, error) {
	var all []rule
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		var r role
		if err := yaml.Unmarshal([]byte(document), &r); err != nil {
			return nil, fmt.Errorf("role.yaml: %w", err)
		}
		for _, one := range r.Rules {
			all = append(all, rule{groups: one.APIGroups, resources: one.Resources, names: one.ResourceNames, verbs: one.Verbs, namespace: r.Metadata.Namespace})
		}
	}
	return all, nil
}
