package host

import (
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// maxControllers is how many manifests a module may have.
const maxControllers = 100

// manifestSet is what the manifest sections say.
type manifestSet struct {
	manifests []*abi.Manifest
	unknown   []string
	err       error
}

// manifests are those of the sections, which are decoded once: there may be many.
func (m *binaryModule) manifests() ([]*abi.Manifest, []string, error) {
	if m.decoded == nil {
		all, unknown, err := m.decodeManifests()
		m.decoded = &manifestSet{all, unknown, err}
	}
	return m.decoded.manifests, m.decoded.unknown, m.decoded.err
}

func (m *binaryModule) decodeManifests() (all []*abi.Manifest, unknown []string, err error) {
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

// manifest is that of the only section, or of the controller that the module runs as; nil
// where there is none.
func (m *binaryModule) manifest() (*abi.Manifest, []string, error) {
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

// manifestProblems returns what is wrong with the sections, and what their manifests ask
// for that they cannot have. Without one, that of describe is checked once it is known.
func (m *binaryModule) manifestProblems(caps []string) (out []string) {
	all, _, err := m.manifests()
	if err != nil {
		return []string{err.Error()}
	}
	if problem := checkManifestNames(all); problem != "" {
		return []string{problem}
	}
	if len(all) == 0 && !m.exportsFunc(abi.ExportDescribe) {
		all = []*abi.Manifest{{}}
	}
	for _, man := range all {
		out = append(out, checkRequires(man, caps)...)
		out = append(out, checkHooks(man, m.exportsFunc)...)
	}
	return out
}

// checkManifestNames says which of several manifests cannot be told from the others.
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

// checkController refuses a module with several controllers where none has the name that
// it is to run as.
func (m *binaryModule) checkController(cfg Config) error {
	all, _, _ := m.manifests() // prepare has looked at the error
	names := make([]string, len(all))
	for i, man := range all {
		if names[i] = man.Name; len(all) == 1 || man.Name == m.controller {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return invalid(cfg.NameFor(nil), fmt.Errorf("has %d controllers, and none is named %q: choose one by --controller, or by the key controller of a file or of a Reconciler's module: %s",
		len(all), m.controller, strings.Join(names, ", ")))
}
