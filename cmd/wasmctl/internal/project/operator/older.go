// SPDX-License-Identifier: Apache-2.0

package operator

import "cmp"

// kubeAPI is the module with the types of Kubernetes.
const kubeAPI = "k8s.io/api"

// forms are the tags of the stand-in for APIs that changed in later versions.
var forms = []struct{ before, tag string }{
	{"v0.18.0", "wasmctl_before_018"},
	{"v0.19.0", "wasmctl_before_019"},
	{"v0.23.0", "wasmctl_before_023"},
}

// age records the versions that the project requires, and the tags for their older APIs.
func (s *Stage) age(mod goMod) {
	for _, r := range mod.Require {
		v := cmp.Or(s.pinned[r.Path], r.Version)
		s.required[r.Path] = v
		for _, form := range forms {
			if r.Path == runtimePath && older(v, form.before) {
				s.forms = append(s.forms, form.tag)
			}
		}
	}
}
