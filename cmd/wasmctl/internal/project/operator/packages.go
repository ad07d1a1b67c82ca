package operator

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	IgnoredGoFiles  []string
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
	if err := s.command(ctx, &out, "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,IgnoredGoFiles,Imports,Module", s.pkg); err != nil {
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

// textOfTemplate is how a program makes a text of a template of Pods or Jobs, for a hash.
// Without its own method, it would have that of the metadata in it.
var textOfTemplate = regexp.MustCompile(`Template(Spec)?\.String\(\)`)

// withProtobuf are the modules that encode protobuf, if it can be left out of all of
// them: those of Kubernetes, whose encoders call one another, and no other one. Policies
// of the API server print kinds by methods that the same files have, and so do programs that
// make texts of templates.
func withProtobuf(packages []pkg, texts bool) (list []change) {
	seen := map[string]bool{}
	for _, p := range packages {
		if strings.HasPrefix(p.ImportPath, "k8s.io/apiserver/pkg/admission/plugin/policy/") {
			return nil
		}
		uses := p.Module != nil && slices.ContainsFunc(p.GoFiles, protobuf) &&
			(p.Module.Path == "k8s.io/api" || slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, "k8s.io/api/") }))
		if !uses || seen[p.Module.Path] {
			continue
		}
		if texts || !strings.HasPrefix(p.Module.Path, "k8s.io/") {
			return []change{{"k8s.io/api", docs, "", nil}}
		}
		seen[p.Module.Path] = true
		list = append(list, change{p.Module.Path, unspoken, "", nil})
	}
	return list
}

const cbor = "k8s.io/apimachinery/pkg/runtime/serializer/cbor"

// machinery is what a module needs to be otherwise in apimachinery. CBOR goes too where
// nothing but the types there can encode it.
func machinery(packages []pkg) change {
	c := change{"k8s.io/apimachinery", only(""), "", noTransport}
	uses := func(p pkg) bool {
		return slices.Contains(p.Imports, cbor) || p.ofProgram() && slices.Contains(p.Imports, cbor+"/direct")
	}
	if !slices.ContainsFunc(packages, uses) {
		c.drop, c.add = only("pkg/runtime/serializer/cbor/direct/direct.go"), "apimachinery"
	}
	return c
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
