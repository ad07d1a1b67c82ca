package operator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
)

// Main is what the main function of an operator gets. What it does decides the
// manifest, so it is part of the module.
type Main struct {
	// Args are its arguments, without the name of the program.
	Args []string `json:"args,omitempty"`
	// Env is its environment.
	Env map[string]string `json:"env,omitempty"`
	// WithoutWebhooks makes it no error that it sets up webhooks, which a module does
	// not serve.
	WithoutWebhooks bool `json:"withoutWebhooks,omitempty"`
}

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
	other.WithoutWebhooks = other.WithoutWebhooks || m.WithoutWebhooks
	return other
}

// IsZero reports whether there is nothing that differs from a plain start.
func (m Main) IsZero() bool { return len(m.Args) == 0 && len(m.Env) == 0 && !m.WithoutWebhooks }

// linkerFlags pass m to the stand-in. The value needs no quotes.
func (m Main) linkerFlags() (string, error) {
	if m.IsZero() {
		return "", nil
	}
	for name := range m.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return "", errors.New("env: a name must not be empty or have a \"=\" in it")
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	return " -X " + runtimePath + "/pkg/internal/program.linked=" + base64.RawURLEncoding.EncodeToString(text), nil
}
