// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"errors"
	"maps"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Map calls the Mapper for the event and returns the objects that the event
// concerns. It fills in missing fields of event: Group, Kind, Version and Key
// from the object, and Type from the presence of Old and New.
func (h *Host) Map(r wasmctl.Reconciler, event wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	h.t.Helper()
	h.manifest = r.Manifest
	out := h.invoke(r, entry.Map, h.eventMessage(event))
	msg, err := decodeMap(out)
	if err != nil {
		h.t.Fatalf("guesttest: map: answer %x: %v", out, err)
	}
	if f := decodeError(msg); f != nil {
		return nil, errors.New(f.Message)
	}
	list, _ := msg["keys"].([]any)
	keys := make([]wasmctl.ObjectKey, len(list))
	for i, k := range list {
		keys[i] = wasmctl.ObjectKey{Namespace: str(k, "namespace"), Name: str(k, "name")}
	}
	return keys, nil
}

// Filter calls the Filters for the event and reports whether they accept it.
// See Map for the fields of event.
func (h *Host) Filter(r wasmctl.Reconciler, event wasmctl.WatchEvent) bool {
	h.t.Helper()
	h.manifest = r.Manifest
	b, err := wire.Append(nil, h.eventMessage(event))
	if err != nil {
		h.t.Fatalf("guesttest: filter: %v", err)
	}
	h.entered = entry.Filter
	defer func() { h.entered = "" }()
	return entry.Keep(functions{h}, r, b)
}

// Configure changes settings, as a user does. Reconciler.Configure receives all
// settings. If it refuses them, the old settings stay in force.
func (h *Host) Configure(r wasmctl.Reconciler, settings map[string]string) error {
	h.t.Helper()
	h.manifest = r.Manifest
	old := h.config
	h.config = maps.Clone(old)
	maps.Copy(h.config, settings)
	h.configGen++
	msg, err := decodeMap(h.invoke(r, entry.Configure, map[string]any{"v": 1, "config_gen": h.configGen, "config": h.setting("")}))
	if err != nil {
		h.t.Fatalf("guesttest: configure: %v", err)
	}
	if f := decodeError(msg); f != nil {
		h.config = old
		h.configGen--
		return errors.New(f.Message)
	}
	return nil
}

func (h *Host) eventMessage(e wasmctl.WatchEvent) map[string]any {
	obj := e.Object()
	if e.Kind == "" {
		at := idOfRef(obj.Ref())
		e.Group, e.Kind = at.group, at.kind
	}
	if e.Version == "" {
		_, e.Version = groupVersion(obj.APIVersion())
	}
	if e.Key == (wasmctl.ObjectKey{}) {
		e.Key = obj.Key()
	}
	if e.Type == "" {
		e.Type = wasmctl.WatchUpdated
		if !e.New.Exists() {
			e.Type = wasmctl.WatchDeleted
		}
	}
	msg := map[string]any{
		"v": 1, "controller": h.manifest.Name, "type": string(e.Type), "key": e.Key,
		"watch": map[string]any{"group": e.Group, "version": e.Version, "kind": e.Kind},
	}
	return withObject(withObject(msg, "old", e.Old), "new", e.New)
}
