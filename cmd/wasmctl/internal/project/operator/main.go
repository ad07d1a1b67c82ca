package operator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Main is what the main function of an operator gets. What it does decides the
// manifest, so it is part of the module.
type Main struct {
	// Args are its arguments, without the name of the program.
	Args []string `json:"args,omitempty"`
	// Env is its environment.
	Env map[string]string `json:"env,omitempty"`
	// Without names what it may set up although a module does not have it; see
	// Leavable.
	Without []string `json:"without,omitempty"`
}

// Leavable is what an operator can be built without, if its main sets it up: webhooks,
// runnables that are no controllers, sources of events that are no kinds, and objects
// that main writes itself. A kind or a group with a dot is one that main is told the API
// server lacks.
var Leavable = []string{"webhooks", "runnables", "sources", "writes"}

// Over returns m where that says something, and other elsewhere.
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

// IsZero reports whether there is nothing that differs from a plain start.
func (m Main) IsZero() bool { return len(m.Args) == 0 && len(m.Env) == 0 && len(m.Without) == 0 }

// linkerFlags pass m to the stand-in, and the objects that main sees. The value needs no
// quotes.
func (m Main) linkerFlags(objects []json.RawMessage) (string, error) {
	if m.IsZero() && len(objects) == 0 {
		return "", nil
	}
	for name := range m.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return "", errors.New("env: a name must not be empty or have a \"=\" in it")
		}
	}
	for _, what := range m.Without {
		if !slices.Contains(Leavable, what) && !strings.Contains(what, ".") {
			return "", fmt.Errorf("without: %q cannot be left out: want %s, KIND.GROUP or a group with a dot", what, strings.Join(Leavable, ", "))
		}
	}
	text, err := json.Marshal(struct {
		Main

		Objects []json.RawMessage `json:"objects,omitempty"`
	}{m, objects})
	if err != nil {
		return "", err
	}
	return " -X " + runtimePath + "/pkg/internal/program.linked=" + base64.RawURLEncoding.EncodeToString(text), nil
}
