// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// TestOpaque_AnUpdateSendsTheTextThatWasRead: an object that a module reads,
// changes and updates keeps the text of its opaque JSON.
func TestOpaque_AnUpdateSendsTheTextThatWasRead(t *testing.T) {
	const letters = `{"z": 1.0,"a":2e0,"u":18446744073709551615,"s":"<"}`
	type revision struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   Map             `json:"metadata"`
		Data       json.RawMessage `json:"data"`
	}
	ref := ObjectRef{APIVersion: "apps/v1", Kind: "ControllerRevision", Namespace: "default", Name: "a"}
	opaque := wire.AppendOpaque(nil, []byte(letters))
	body := wire.NewBuilder(nil)
	body.Text("apiVersion", ref.APIVersion)
	body.Text("kind", ref.Kind)
	body.Map("metadata", func(m *wire.Builder) { m.Text("name", ref.Name) })
	body.Raw("data", opaque)
	host := &scriptHost{body: body.End()}
	msg, err := wire.Append(nil, Map{"v": 1, "id": "r", "key": Map{"name": "a"}, "caps": []string{"declare", "opaque"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, host, msg, func(ctx *Context, _ Object) (Action, error) {
		o, err := ctx.Client().Get(ref, GetOptions{})
		if err != nil {
			return AwaitChange(), err
		}
		if o.String("data", "s") != "<" || o.Int("data", "a") != 2 {
			t.Error("the value of opaque JSON cannot be read")
		}
		if err := o.Set("b", "metadata", "labels", "a"); err != nil {
			return AwaitChange(), err
		}
		if _, err := ctx.Client().Update(o, WriteOptions{}); err != nil || !bytes.Contains(host.req, opaque) {
			t.Errorf("an object: %v, %q", err, host.req)
		}
		typed, err := Decode[revision](o.Value)
		if err != nil || string(typed.Data) != letters {
			t.Errorf("%s, %v", typed.Data, err)
		}
		if _, err := ctx.Client().Update(typed, WriteOptions{}); err != nil || !bytes.Contains(host.req, opaque) {
			t.Errorf("a struct: %v, %q", err, host.req)
		}
		return AwaitChange(), nil
	})
}
