// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
)

// Exchange passes a whole message to an entry of the module, and returns the result of the
// entry: its value, and a copy of the block to which that points (none for filter, whose
// value is the answer). Neither is checked. It is for tools that try how a guest takes
// messages that this host would not send; a reconcile goes through Acquire. It runs within
// the bounds of that entry, in a slot of the reconciles. The errors are those of abi.Guest
// and Acquire, and ErrNoHook if the module does not have the entry.
func (m *Module) Exchange(ctx context.Context, export string, msg []byte) (value uint64, result []byte, err error) {
	rev, in, err := m.get(ctx, m.shared.slots, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("module[%s]: %s: %w", m.name, export, err)
	}
	defer func() { rev.put(in, m.shared.slots) }()
	if !slices.Contains(entries, export) || export != abi.ExportReconcile && !rev.spec.Hook(export) {
		return 0, nil, fmt.Errorf("module[%s]: %s: %w", m.name, export, ErrNoHook)
	}
	in.Run.ID, in.Run.Key = "", abi.Key{}
	err = in.Enter(ctx, rev.spec.Entry(export), instance.Message{First: msg}, func(v uint64) error {
		if value = v; export == abi.ExportFilter {
			value = uint64(uint32(v)) //nolint:gosec // an i32
			return nil
		}
		b, err := in.Result(v)
		result = bytes.Clone(b)
		return err
	})
	return value, result, err
}

// entries are the exports that take a message.
var entries = []string{
	abi.ExportReconcile, abi.ExportErrorPolicy, abi.ExportFinalize, abi.ExportMap, abi.ExportFilter, abi.ExportConfigure,
	abi.ExportValidate, abi.ExportDefault, abi.ExportConvert,
}
