// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"slices"
	"strings"
)

// pkg is a package in the output of go list.
type pkg struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	IgnoredGoFiles  []string
	Imports         []string
	Export          string // the file with the export data, once compiled
	Error           *struct{ Pos, Err string }
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Version string }
	}
}

// packages lists the packages of the program.
func (s *Stage) packages(ctx context.Context) ([]pkg, error) {
	var out bytes.Buffer
	if err := s.command(ctx, &out, "list", "-e", "-deps", "-tags="+s.tags(), "-json=ImportPath,Dir,Standard,GoFiles,IgnoredGoFiles,Imports,Module,Error", s.pkg); err != nil {
		return nil, err
	}
	return readPackages(&out)
}

const openAPI = "k8s.io/kube-openapi"

// usesOpenAPI reports whether the program itself uses kube-openapi, for example for types with
// generated definitions, or through kustomize. The stand-in has only the packages that Kubernetes'
// libraries need.
func usesOpenAPI(packages []pkg) bool {
	return slices.ContainsFunc(packages, func(p pkg) bool {
		if strings.HasPrefix(p.ImportPath, openAPI+"/") && p.Dir == "" {
			return true
		}
		return p.ofProgram() && slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, openAPI+"/") })
	})
}

// feature is a part of Kubernetes' libraries that overlays remove from programs that do not
// use it.
type feature string

// Features that overlays remove.
const (
	cbor     feature = "cbor"     // the encoding
	docs     feature = "docs"     // the documentation of fields
	protobuf feature = "protobuf" // the encoding of API objects, without their texts and sizes
)

// features has the modules that can lose a feature.
type features map[feature]map[string]bool

const (
	cborPackage   = "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	policyPackage = "k8s.io/apiserver/pkg/admission/plugin/policy/"
)

// unusedBy returns the features that the program does not use.
//
// Protobuf can go only from all modules of Kubernetes at once, because their encoders call one
// another, and only if no other module calls them.
func unusedBy(packages []pkg) features {
	unused := features{docs: {kubeAPI: true}, protobuf: {}, cbor: {"k8s.io/apimachinery": true}}
	shared := false
	for i := range packages {
		p := &packages[i]
		if slices.Contains(p.Imports, cborPackage) || p.ofProgram() && slices.Contains(p.Imports, cborPackage+"/direct") {
			delete(unused, cbor)
		}
		if strings.HasPrefix(p.ImportPath, policyPackage) {
			delete(unused, docs)
		}
		if p.encodesAPI() {
			unused[protobuf][p.Module.Path] = true
			shared = shared || !strings.HasPrefix(p.Module.Path, "k8s.io/")
		}
	}
	if shared {
		delete(unused, protobuf)
	}
	return unused
}

// encodesAPI reports whether the package encodes types of k8s.io/api as protobuf.
func (p *pkg) encodesAPI() bool {
	return p.Module != nil && slices.ContainsFunc(p.GoFiles, func(f string) bool { return strings.HasSuffix(f, ".pb.go") }) &&
		(p.Module.Path == kubeAPI || slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, kubeAPI+"/") }))
}

// ofProgram reports whether a package belongs to the program or to a library outside Kubernetes.
func (p *pkg) ofProgram() bool {
	if p.Standard || p.Module == nil {
		return false
	}
	return !strings.HasPrefix(p.Module.Path, "k8s.io/") && p.Module.Path != runtimePath && p.Module.Path != sdkPath
}
