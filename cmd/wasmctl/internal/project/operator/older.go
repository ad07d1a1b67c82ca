package operator

import (
	"cmp"
	"slices"
)

// kubeAPI is the module with the types of Kubernetes.
const kubeAPI = "k8s.io/api"

// forms are the tags of the stand-in for what has another form in later versions.
var forms = []struct{ before, tag string }{
	{"v0.18.0", "wasmctl_before_018"},
	{"v0.19.0", "wasmctl_before_019"},
}

const claimTag = "`json:\"resources,omitempty\" protobuf:\"bytes,2,opt,name=resources\"`"

// volumes gives claims the requirements of containers, which they have before 0.29. The
// type of later ones lacks a field that claims never had a use for.
var volumes = []edit{{
	"core/v1/types.go", "\tResources VolumeResourceRequirements " + claimTag, "\tResources ResourceRequirements " + claimTag,
}}

// age notes what has another form in the project's versions than in those of the build.
func (s *Stage) age(mod goMod) {
	for _, r := range mod.Require {
		v := cmp.Or(s.pinned[r.Path], r.Version)
		for _, form := range forms {
			if r.Path == runtimePath && older(v, form.before) {
				s.older = append(s.older, form.tag)
			}
		}
		if r.Path == kubeAPI && older(v, "v0.29.0") {
			s.edits = volumes
		}
	}
}

// withAPI adds the edits of k8s.io/api to the changes.
func (s *Stage) withAPI(list []change) []change {
	i := slices.IndexFunc(list, func(c change) bool { return c.module == kubeAPI })
	if i < 0 && s.edits != nil {
		return append(list, change{kubeAPI, none, "", s.edits})
	}
	if i >= 0 {
		list[i].edits = s.edits
	}
	return list
}
