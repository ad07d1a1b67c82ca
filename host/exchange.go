package host

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Exchange hands an entry of the module a whole message, as it is, and returns
// what the entry returned: its number, and a copy of the block that this points
// to (none for filter, whose number is the answer). Neither is checked. It is
// for tools that try how a guest takes what this host would not send; a
// reconcile goes through Acquire. It runs within the bounds of that entry, on a
// slot of the reconciles, and its errors are those of abi.Guest and Acquire;
// ErrNoHook where the module does not have the entry.
func (m *Module) Exchange(ctx context.Context, export string, msg []byte) (value uint64, result []byte, err error) {
	g, in, err := m.get(ctx, m.shared.slots, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("module[%s]: %s: %w", m.name, export, err)
	}
	defer func() { g.put(in, m.shared.slots) }()
	if !slices.Contains(entries, export) || export != abi.ExportReconcile && !g.hook(export) {
		return 0, nil, fmt.Errorf("module[%s]: %s: %w", m.name, export, ErrNoHook)
	}
	in.run.id, in.run.key = "", abi.Key{}
	err = in.enter(ctx, g.entry(export), message{first: msg}, func(v uint64) error {
		if value = v; export == abi.ExportFilter {
			value = uint64(u32(v))
			return nil
		}
		b, err := in.result(v)
		result = bytes.Clone(b)
		return err
	})
	return value, result, err
}

// entries are the exports that take a message.
var entries = []string{abi.ExportReconcile, abi.ExportErrorPolicy, abi.ExportFinalize, abi.ExportMap, abi.ExportFilter, abi.ExportConfigure}
