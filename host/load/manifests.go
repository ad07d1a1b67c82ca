// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// maxControllers is how many manifests a module may have.
const maxControllers = 100

// manifestSet is the decoded content of the manifest sections.
type manifestSet struct {
	manifests []*abi.Manifest
	unknown   []string
	err       error
}

// manifests returns the manifests of the sections. They are decoded once, because there may
// be many.
func (m *Module) manifests() ([]*abi.Manifest, []string, error) {
	if m.decoded == nil {
		all, unknown, err := m.decodeManifests()
		m.decoded = &manifestSet{all, unknown, err}
	}
	return m.decoded.manifests, m.decoded.unknown, m.decoded.err
}

func (m *Module) decodeManifests() (all []*abi.Manifest, unknown []string, err error) {
	sections := m.manifestSections()
	if n := len(sections); n > maxControllers {
		return nil, nil, fmt.Errorf("section[%s]: found %d, the limit is %d", abi.ManifestSection, n, maxControllers)
	}
	for _, payload := range sections {
		man, more, err := abi.DecodeManifest(payload)
		if err != nil {
			return nil, nil, fmt.Errorf("section[%s]: %w", abi.ManifestSection, err)
		}
		all, unknown = append(all, man), append(unknown, more...)
	}
	return all, unknown, nil
}

// Manifest returns the manifest of the only section, or of the controller as which the
// module runs, and the keys that this host does not know. It is nil if there is none.
func (m *Module) Manifest() (*abi.Manifest, []string, error) {
	all, unknown, err := m.manifests()
	if len(all) == 1 {
		return all[0], unknown, nil
	}
	for _, man := range all {
		if man.Name == m.controller {
			return man, unknown, nil
		}
	}
	return nil, nil, err
}

// manifestProblems returns the problems of the sections, and the requests of their manifests
// that this host cannot satisfy. If there is no section, CheckManifest checks the manifest
// of describe later.
func (m *Module) manifestProblems(caps []string) (out []string) {
	all, _, err := m.manifests()
	if err != nil {
		return []string{err.Error()}
	}
	if problem := checkManifestNames(all); problem != "" {
		return []string{problem}
	}
	if len(all) == 0 && !m.Exports(abi.ExportDescribe) {
		all = []*abi.Manifest{{}}
	}
	for _, man := range all {
		out = append(out, CheckManifest(man, caps, m.Exports)...)
	}
	return out
}

// checkManifestNames returns a problem if two of several manifests cannot be distinguished.
func checkManifestNames(manifests []*abi.Manifest) string {
	names := map[string]bool{}
	for i, man := range manifests {
		if len(manifests) > 1 && (man.Name == "" || names[man.Name]) {
			return fmt.Sprintf("section[%s]: manifest %d of %d: name %q: each needs a name of its own", abi.ManifestSection, i+1, len(manifests), man.Name)
		}
		names[man.Name] = true
	}
	return ""
}

// CheckController returns an error if the module has several controllers and none of them
// has the name as which it is to run.
func (m *Module) CheckController() error {
	all, _, _ := m.manifests() // Read has returned the error as a problem
	names := make([]string, len(all))
	for i, man := range all {
		if names[i] = man.Name; len(all) == 1 || man.Name == m.controller {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("has %d controllers, and none is named %q: choose one by --controller, or by the key controller of a file or of a Reconciler's module: %s",
		len(all), m.controller, strings.Join(names, ", "))
}
