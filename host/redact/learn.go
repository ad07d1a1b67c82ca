package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// Learn takes the values of all Secrets in a message in msgpack: an object, a
// list, or a request that holds one. Unreadable input has none.
func (v *Values) Learn(message []byte) {
	if v == nil || !mentions(message) {
		return
	}
	if m, err := abi.DecodeObject(message); err == nil {
		v.LearnObject(m)
	}
}

// LearnObject is Learn for an object that has been decoded.
func (v *Values) LearnObject(object map[string]any) {
	if v == nil {
		return
	}
	var texts []string
	collect(object, false, func(text string) { texts = append(texts, text) })
	if len(texts) > 0 {
		v.add(texts)
	}
}

// collect finds the Secrets in a value and passes on each form of their values.
func collect(value any, secret bool, add func(string)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			collect(item, secret, add)
		}
	case map[string]any:
		if secret || isSecretObject(value) {
			each(value["data"], func(text string) { // base64
				if b, err := base64.StdEncoding.DecodeString(text); err == nil {
					plain(string(b), add)
				} else {
					add(text)
				}
			})
			each(value["stringData"], func(text string) { plain(text, add) })
			if status, ok := value["status"].(map[string]any); ok {
				each(map[string]any{"token": status["token"]}, func(text string) { plain(text, add) })
			}
		}
		for key, part := range value {
			collect(part, key == "items" && value["kind"] == "SecretList", add)
		}
	}
}

func each(values any, f func(string)) {
	m, _ := values.(map[string]any)
	for _, value := range m {
		if text, ok := value.(string); ok {
			f(text)
		}
	}
}

// plain adds the forms in which a value shows up: its lines, as they are and
// escaped, base64 of the whole, and the strings of a value that is JSON.
func plain(text string, add func(string)) {
	standard := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "=")
	add(standard)
	if urlSafe := strings.NewReplacer("+", "-", "/", "_").Replace(standard); urlSafe != standard {
		add(urlSafe)
	}
	lines(text, add)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") {
		var value any
		if json.Unmarshal([]byte(trimmed), &value) == nil {
			leaves(value, func(leaf string) { lines(leaf, add) })
		}
	}
}

func lines(text string, add func(string)) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if harmless[line] {
			continue
		}
		add(line)
		if quoted := strconv.Quote(line); len(quoted) != len(line)+2 {
			add(quoted[1 : len(quoted)-1])
		}
		if escaped := url.QueryEscape(line); escaped != line {
			add(escaped)
		}
	}
}

// harmless are values that hide nothing, and that every log is full of.
var harmless = map[string]bool{"true": true, "false": true, "null": true, "none": true}

func leaves(value any, f func(string)) {
	switch value := value.(type) {
	case string:
		f(value)
	case []any:
		for _, item := range value {
			leaves(item, f)
		}
	case map[string]any:
		for _, part := range value {
			leaves(part, f)
		}
	}
}
