package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	Imports         []string
	Export          string // the file of what it exports, once compiled
	Error           *struct{ Pos, Err string }
	Module          *struct {
		Path, Dir string
		Main      bool
	}
}

// packages lists the packages of the program.
func (s *Stage) packages(ctx context.Context) ([]pkg, error) {
	var out bytes.Buffer
	if err := s.command(ctx, &out, "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Imports,Module", s.pkg); err != nil {
		return nil, err
	}
	return readPackages(&out)
}

const openAPI = "k8s.io/kube-openapi"

// usesOpenAPI reports whether the program itself uses kube-openapi, as types with
// generated definitions and kustomize do: what stands in for it has what Kubernetes'
// libraries need, and not more.
func usesOpenAPI(packages []pkg) bool {
	return slices.ContainsFunc(packages, func(p pkg) bool {
		if strings.HasPrefix(p.ImportPath, openAPI+"/") && p.Dir == "" {
			return true
		}
		return p.ofProgram() && slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, openAPI+"/") })
	})
}

// withProtobuf are the modules that encode protobuf, if it can be left out of all of
// them: those of Kubernetes, whose encoders call one another, and no other one.
func withProtobuf(packages []pkg) (list []change) {
	seen := map[string]bool{}
	for _, p := range packages {
		uses := p.Module != nil && slices.ContainsFunc(p.GoFiles, protobuf) &&
			(p.Module.Path == "k8s.io/api" || slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, "k8s.io/api/") }))
		if !uses || seen[p.Module.Path] {
			continue
		}
		if !strings.HasPrefix(p.Module.Path, "k8s.io/") {
			return nil
		}
		seen[p.Module.Path] = true
		list = append(list, change{p.Module.Path, protobuf, "", nil})
	}
	return list
}

// usesREST reports whether the program has clients of client-go beside the
// manager's. The stand-in for controller-runtime does not have them.
func usesREST(packages []pkg) bool {
	return slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == "k8s.io/client-go/rest" })
}

// guardsMetrics reports whether the manager asks the API server who may read its metrics.
func guardsMetrics(packages []pkg) bool {
	return slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == runtimePath+"/pkg/metrics/filters" })
}

// ofProgram reports whether a package is the program's, or of one that it is made
// of, and not one of Kubernetes' libraries.
func (p *pkg) ofProgram() bool {
	if p.Standard || p.Module == nil {
		return false
	}
	return !strings.HasPrefix(p.Module.Path, "k8s.io/") && p.Module.Path != runtimePath && p.Module.Path != sdkPath
}

// rulesOf returns what the markers of the packages say, and what the role says that
// the operator is deployed with: not all rules of each role come from markers.
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
	text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	ofRole, err := rulesOfRole(text)
	return append(all, ofRole...), err
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
