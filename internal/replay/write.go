// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// writeOf describes a request of a guest. Values of Secrets are replaced by marks that differ if the values do.
func writeOf(op abi.Op, req []byte) shadow.Write {
	what := strings.TrimPrefix(string(op), "api_")
	m, err := abi.DecodeObject(req)
	if err != nil {
		return shadow.Write{What: what, Body: "unreadable request: " + err.Error()}
	}
	if op == abi.OpEventRecord {
		return shadow.Write{What: "event", Body: m}
	}
	object, _ := m["object"].(map[string]any)
	patch, patched := m["patch"]
	w := locate(what, m, object)
	options := map[string]any{}
	for key, value := range m {
		switch key {
		case "apiVersion", "kind", "namespace", "name", "subresource", "object", "patch":
		default:
			options[key] = value
		}
	}
	switch {
	case object != nil:
		w.Body = hidden(w.Kind, object)
	case patched:
		w.Body = hiddenPatch(w.Kind, patch)
	}
	if len(options) > 0 {
		w.Body = map[string]any{"object": w.Body, "options": options}
	}
	return w
}

// declared describes a declared child.
func declared(child []byte) shadow.Write {
	o, err := abi.DecodeObject(child)
	if err != nil {
		return shadow.Write{What: "declare", Body: "unreadable object: " + err.Error()}
	}
	w := locate("declare", nil, o)
	w.Body = hidden(w.Kind, o)
	return w
}

// locate determines the object of a write: the request's fields take precedence over those of the object.
func locate(what string, req, object map[string]any) shadow.Write {
	word := func(key string) string {
		for _, m := range []map[string]any{req, object} {
			if text, _ := m[key].(string); text != "" {
				return text
			}
		}
		return ""
	}
	w := shadow.Write{What: what, Kind: word("apiVersion") + "/" + word("kind")}
	if sub := word("subresource"); sub != "" {
		w.Kind += "/" + sub
	}
	meta, _ := object["metadata"].(map[string]any)
	named := func(key string) string {
		if text, _ := req[key].(string); text != "" {
			return text
		}
		text, _ := meta[key].(string)
		return text
	}
	w.Key = abi.Key{Namespace: named("namespace"), Name: named("name")}
	return w
}

// hidden returns an object with its secret values redacted.
func hidden(kind string, object map[string]any) map[string]any {
	if strings.HasPrefix(kind, "v1/Secret") {
		return redact.Distinct("", "Secret", object)
	}
	return redact.Distinct("", "", object)
}

// hiddenPatch is like hidden, for a patch, in which each value may be secret.
func hiddenPatch(kind string, patch any) any {
	list, ok := patch.([]any)
	if m, isMap := patch.(map[string]any); isMap {
		return hidden(kind, m)
	}
	if !ok || !strings.HasPrefix(kind, "v1/Secret") {
		return patch
	}
	out := make([]any, len(list))
	for i, step := range list {
		m, _ := step.(map[string]any)
		marked := map[string]any{"op": m["op"], "path": m["path"]}
		if value, there := m["value"]; there {
			marked["value"] = redact.Distinct("", "Secret", map[string]any{"data": map[string]any{"value": value}})["data"].(map[string]any)["value"]
		}
		out[i] = marked
	}
	return out
}
