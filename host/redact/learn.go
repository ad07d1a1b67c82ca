// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// Learn adds the values of a Secret, a list of Secrets, or the answer to a token request, in
// msgpack. It ignores all other objects, even if they contain something of this form: otherwise the
// writer of an object could choose words to hide.
func (v *Values) Learn(message []byte) {
	if v == nil || !isSecretMessage(message) {
		return
	}
	if m, err := abi.DecodeObject(message); err == nil {
		v.LearnObject(m)
	}
}

// LearnTexts adds values of Secrets that are given as texts.
func (v *Values) LearnTexts(values []string) {
	if v == nil || len(values) == 0 {
		return
	}
	var texts []string
	for _, value := range values {
		plain(value, func(text string) { texts = append(texts, text) })
	}
	v.add(texts)
}

// LearnRequest is Learn for the object of a request that was carried out.
func (v *Values) LearnRequest(message []byte) {
	c := packed.At(message)
	for range c.MapLen() {
		if string(c.Text()) == "object" {
			v.Learn(c.Value())
			return
		}
		c.Skip()
	}
}

// LearnObject is Learn for a decoded object.
func (v *Values) LearnObject(object map[string]any) {
	if v == nil {
		return
	}
	var texts []string
	add := func(text string) { texts = append(texts, text) }
	switch {
	case !ofKubernetes(object):
	case isSecretObject(object):
		collect(object, add)
	case object["kind"] == "SecretList":
		items, _ := object["items"].([]any)
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				collect(m, add)
			}
		}
	}
	if len(texts) > 0 {
		v.add(texts)
	}
}

// ofKubernetes reports whether an object that is called Secret or TokenRequest can be one of
// Kubernetes'.
func ofKubernetes(object map[string]any) bool {
	version, there := object["apiVersion"].(string)
	return !there || version == "v1" || strings.HasPrefix(version, "authentication.k8s.io/")
}

// collect passes each form of the values of a Secret or TokenRequest to add. A value that is its name, or a part of
// its name or namespace, is not secret: to hide it would hide the name in all texts about the object.
func collect(object map[string]any, add func(string)) {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	learn := func(text string) {
		if value := strings.TrimSpace(text); !strings.Contains(name, value) && !strings.Contains(namespace, value) {
			plain(text, add)
		}
	}
	each(object["data"], func(text string) { // base64
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			learn(string(b))
		} else {
			add(text)
		}
	})
	each(object["stringData"], learn)
	if status, ok := object["status"].(map[string]any); ok {
		each(map[string]any{"token": status["token"]}, learn)
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
