// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/protobuf"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

var (
	protobufMagic = []byte("k8s\x00")
	errProtobuf   = errors.New("answer of the API server: protobuf with unknown fields")
)

// takeTexts takes the opaque JSON of a body, which is sent unchanged, except for that in the
// identity and the metadata, which the host checks and changes. Errors are badRequest.
func (r *request) takeTexts(b []byte, where string) error {
	texts, err := abi.OpaqueTexts(b)
	if err == nil {
		err = texts.Check()
	}
	switch {
	case err != nil:
		return badf("%s: %v", where, err)
	case texts == nil:
		return nil
	}
	if texts.Text != nil {
		return badf("%s: must not be opaque JSON itself", where)
	}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(texts.Keys, key)
	}
	for _, op := range texts.Elements { // of a JSON patch
		if op.Text != nil || op.Keys["value"] == nil || len(op.Keys) > 1 {
			return badf("%s: only the value of an operation may be opaque JSON", where)
		}
	}
	r.texts = texts
	return nil
}

// table returns the table of a built-in kind that contains opaque JSON, or nil for other kinds. With
// a subresource other than status, the answer may have another kind.
func (r *request) table() *protobuf.Message {
	if r.Subresource != "" && r.Subresource != subresourceStatus {
		return nil
	}
	t, builtIn := scheme.Scheme.AllKnownTypes()[r.kind.GVK()]
	if !builtIn {
		return nil
	}
	m, err := protobuf.TableOf(t)
	if err != nil || m.Opaque() == nil {
		return nil
	}
	return m
}

// transcoder returns the transcoder for the answer. An API server removes spaces from opaque JSON in
// its own JSON, and escapes some characters. If the result of that is the same as for the text that
// was written, the text is the stored one.
func (r *request) transcoder() *transcode.Transcoder {
	m := r.table()
	switch {
	case m == nil:
		return &transcode.Transcoder{}
	case r.op == abi.OpAPIList:
		return &transcode.Transcoder{Opaque: transcode.Fields{"items": m.Opaque()}}
	}
	t := &transcode.Transcoder{Opaque: m.Opaque(), Originals: map[string][]byte{}}
	if r.op == abi.OpAPICreate || r.op == abi.OpAPIUpdate {
		addOriginals(t.Originals, r.texts)
	}
	return t
}

func addOriginals(to map[string][]byte, texts *abi.Texts) {
	if texts == nil {
		return
	}
	var compact, escaped bytes.Buffer
	if texts.Text != nil && json.Compact(&compact, texts.Text) == nil {
		json.HTMLEscape(&escaped, compact.Bytes())
		to[escaped.String()] = texts.Text
	}
	for _, inner := range texts.Keys {
		addOriginals(to, inner)
	}
	for _, inner := range texts.Elements {
		addOriginals(to, inner)
	}
}

// accepts returns the formats in which an answer is requested. Opaque JSON is read as protobuf,
// because an API server escapes some of its characters in JSON. The answer to a write must not
// have unknown fields, and can be requested only once, so it is JSON.
func (r *request) accepts() string {
	if !slices.Contains(opsRead, r.op) || r.onlyJSON || r.table() == nil {
		return jsonType
	}
	return protobufType + "," + jsonType
}

// fromProtobuf returns the JSON of an answer in protobuf, with its opaque JSON unchanged.
func (r *request) fromProtobuf(answer []byte) ([]byte, error) {
	var unknown runtime.Unknown
	content, ok := bytes.CutPrefix(answer, protobufMagic)
	if m := r.table(); ok && m != nil && unknown.Unmarshal(content) == nil {
		if r.op == abi.OpAPIList {
			return listJSON(m, r.kind.GVK(), &unknown)
		}
		return objectJSON(m, unknown.APIVersion, unknown.Kind, unknown.Raw)
	}
	return nil, errProtobuf
}

// objectJSON returns the JSON of an object in protobuf.
func objectJSON(m *protobuf.Message, apiVersion, kind string, object []byte) ([]byte, error) {
	var t protobuf.Transcoder
	packed, ok := t.Append(nil, m, apiVersion, kind, object)
	if !ok {
		return nil, errProtobuf
	}
	v, err := abi.DecodeObject(packed)
	if err != nil {
		return nil, errProtobuf
	}
	texts, err := abi.OpaqueTexts(packed)
	if err != nil {
		return nil, errProtobuf
	}
	return texts.AppendJSON(nil, v)
}

// listJSON returns the JSON of a list in protobuf: its metadata, and the items. As in the API
// server's JSON, the items have no type.
func listJSON(m *protobuf.Message, kind schema.GroupVersionKind, list *runtime.Unknown) ([]byte, error) {
	if list.Kind != kind.Kind+"List" {
		return nil, errProtobuf
	}
	var meta metav1.ListMeta
	var items []string
	for b := list.Raw; len(b) > 0; {
		num, wire, n := protowire.ConsumeTag(b)
		if n < 0 || wire != protowire.BytesType || num > 2 {
			return nil, errProtobuf
		}
		field, size := protowire.ConsumeBytes(b[n:])
		if size < 0 {
			return nil, errProtobuf
		}
		b = b[n+size:]
		if num == 1 {
			if meta.Unmarshal(field) != nil {
				return nil, errProtobuf
			}
			continue
		}
		item, err := objectJSON(m, "", "", field)
		if err != nil {
			return nil, err
		}
		items = append(items, string(item))
	}
	head, err := json.Marshal(map[string]any{"apiVersion": list.APIVersion, "kind": list.Kind, "metadata": &meta})
	if err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(string(head), "}") + `,"items":[` + strings.Join(items, ",") + "]}"), nil
}
