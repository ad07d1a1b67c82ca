// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// Main is the input of an operator's main function. It determines the manifest, so it is part of
// the module.
type Main struct {
	// Args are the arguments, without the name of the program.
	Args []string `json:"args,omitempty"`
	// Env is the environment.
	Env map[string]string `json:"env,omitempty"`
	// Without names things that main may set up although a module does not have them. See Leavable.
	Without []string `json:"without,omitempty"`
}

// Leavable are the things that can be left out of an operator whose main sets them up: webhooks,
// runnables other than controllers, sources of events other than kinds, and objects that main
// writes itself. A name with a dot is a kind or a group that the API server lacks, as main sees it.
var Leavable = []string{"webhooks", "runnables", "sources", "writes"}

// Over returns m, with the fields of other that are empty in m.
func (m Main) Over(other Main) Main {
	if len(m.Args) > 0 {
		other.Args = m.Args
	}
	if len(m.Env) > 0 {
		env := maps.Clone(other.Env)
		if env == nil {
			env = map[string]string{}
		}
		maps.Copy(env, m.Env)
		other.Env = env
	}
	other.Without = slices.Concat(other.Without, m.Without)
	return other
}

// IsZero reports whether main starts without any input.
func (m Main) IsZero() bool { return len(m.Args) == 0 && len(m.Env) == 0 && len(m.Without) == 0 }

// found is the input of main that the build finds in files: objects that main sees, and the settings
// of webhooks.
type found struct {
	Objects  []json.RawMessage `json:"objects,omitempty"`
	Webhooks []abi.Webhook     `json:"webhooks,omitempty"`
}

// linkerFlags returns the flags that pass m and f to the stand-in. The value needs no quotes.
func (m Main) linkerFlags(f found) (string, error) {
	if m.IsZero() && len(f.Objects)+len(f.Webhooks) == 0 {
		return "", nil
	}
	for name := range m.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return "", errors.New("env: a name must not be empty or have a \"=\" in it")
		}
	}
	for _, what := range m.Without {
		if !slices.Contains(Leavable, what) && !strings.Contains(what, ".") {
			return "", fmt.Errorf("without: %q cannot be left out: use %s, KIND.GROUP or a group with a dot", what, strings.Join(Leavable, ", "))
		}
	}
	text, err := json.Marshal(struct {
		Main
		found
	}{m, f})
	if err != nil {
		return "", err
	}
	return " -X " + runtimePath + "/pkg/internal/program.linked=" + base64.RawURLEncoding.EncodeToString(text), nil
}
