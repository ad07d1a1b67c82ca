// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// attacks are all of them.
func attacks() []attack {
	var out []attack
	for _, list := range [][]attack{
		timeAttacks(), stackAttacks(), memoryAttacks(), faultAttacks(), blockAttacks(), messageAttacks(),
		callAttacks(), floodAttacks(), wasiAttacks(), loadAttacks(), binaryAttacks(), hostAttacks(), frameAttacks(),
	} {
		out = append(out, list...)
	}
	return out
}

// timeAttacks would go on forever.
func timeAttacks() []attack {
	out := []attack{
		{guest: "spin"},
		{guest: "spin_calls"},
		{guest: "spin_table"},
		{guest: "spin_copy"},
		{guest: "spin_wasi_clock"},
		{guest: "spin_wasi_random"},
		{guest: "spin_operations"},
		{guest: "spin_cancelled"},
		{guest: "sleep"},
		{guest: "spin_buffer"},
		{guest: "spin_map", on: abi.ExportMap},
		{guest: "spin_map", on: abi.ExportFilter},
		{guest: "spin_policy", on: abi.ExportErrorPolicy},
		{guest: "grow_refused_for_ever"},
		{guest: "spin_start", on: onLoad},
		{guest: "spin_initialize", on: onLoad},
		{guest: "describe_spin", on: onLoad},
		{guest: "configure_spin", on: onLoad},
	}
	for i := range out {
		out[i].limits.Timeout = spinning
		out[i].kind, out[i].message = abi.FailureTimeout, "exceeded its time limit (timeout 150ms)"
	}
	fuel := attack{guest: "spin", on: "", limits: share.Limits{Fuel: 1_000_000}, kind: abi.FailureTimeout, message: "(fuel 1000000)"}
	return append(out, fuel)
}

// stackAttacks call without end. wazero keeps a guest's stack on the heap.
func stackAttacks() []attack {
	out := []attack{
		{guest: "recurse"},
		{guest: "recurse_indirect"},
		{guest: "recurse_turns"},
		{guest: "recurse_wide"},
		{guest: "recurse_map", on: abi.ExportMap},
		{guest: "recurse_start", on: onLoad},
	}
	for i := range out {
		out[i].kind, out[i].message = abi.FailureTrap, "(stack 4Mi)"
	}
	return out
}

// frameAttacks recurse with operands that are in no local.
func frameAttacks() (out []attack) {
	for _, n := range []int{100, 1000, 10_000} {
		out = append(out, attack{guest: fmt.Sprintf("recurse with %d operands", n), bytes: func() []byte { return largeFrames(n) }, kind: abi.FailureTrap, message: "(stack 4Mi)"})
	}
	return out
}

// memoryAttacks want all memory.
func memoryAttacks() []attack {
	refused := "exceeded its memory limit (memory 16Mi)"
	budget := share.Limits{Memory: 1 << 30}
	return []attack{
		{guest: "grow_trap", kind: abi.FailureMemory, message: refused},
		{guest: "grow_touch", kind: abi.FailureMemory, message: refused},
		{guest: "grow_touch", on: "reconcile", limits: budget, kind: abi.FailureMemory, message: "(memory_budget 256Mi)"},
		{guest: "grow_at_once", kind: abi.FailureMemory, message: refused},
		{guest: "grow_negative", kind: abi.FailureTrap, message: "unreachable"},
		{guest: "grow_await"},
		{guest: "grow_table", kind: abi.FailureTrap, message: "unreachable"},
		{guest: "grow_start", on: onLoad, kind: abi.FailureMemory, message: refused},
		{guest: "grow_buffer", kind: abi.FailureMemory, message: refused},
		{guest: "huge_start", on: onLoad, message: "needs 4Gi to start, the limit is 16Mi"},
		// It takes 4 MiB in each run of the same instance, until there is no more.
		{guest: "leak", runs: 4, kind: abi.FailureMemory, message: refused},
		// The instance that lies in ruins is gone: every other run meets a fresh one.
		{guest: "allocator", kind: abi.FailureOutput, runs: 2, message: "buffer returned 2147483640, but"},
		{guest: "allocator", on: "reconcile", runs: 3},
		{guest: "allocator_odd", kind: abi.FailureOutput, runs: 4, message: "buffer returned 1027: want 8-byte alignment"},
	}
}

// faultAttacks do what WebAssembly itself forbids.
func faultAttacks() []attack {
	return []attack{
		{guest: "load_outside", kind: abi.FailureTrap, message: "out of bounds memory access"},
		{guest: "store_outside", kind: abi.FailureTrap, message: "out of bounds memory access"},
		{guest: "fill_outside", kind: abi.FailureTrap, message: "out of bounds memory access"},
		{guest: "null_call", kind: abi.FailureTrap, message: "invalid table access"},
		// Segments beyond the end of a table are omitted: the entries stay null.
		{guest: "elements_outside", kind: abi.FailureTrap, message: "invalid table access"},
		{guest: "wrong_call", kind: abi.FailureTrap, message: "indirect call type mismatch"},
		{guest: "divide", kind: abi.FailureTrap, message: "integer divide by zero"},
		{guest: "overflow", kind: abi.FailureTrap, message: "integer overflow"},
		{guest: "nan_to_int", kind: abi.FailureTrap, message: "invalid conversion to integer"},
	}
}

// blockAttacks point at, over and around the end of memory.
func blockAttacks() []attack {
	outside := "does not lie in memory of 65536 bytes"
	return []attack{
		{guest: "result_at_end"},
		{guest: "result_last_byte"},
		{guest: "result_at_null"},
		{guest: "result_request"},
		{guest: "result_behind_end", kind: abi.FailureOutput, message: "result of 0 bytes at 65537 " + outside},
		{guest: "result_over_end", kind: abi.FailureOutput, message: "result of 2 bytes at 65535 " + outside},
		{guest: "result_wraps", kind: abi.FailureOutput, message: "result of 16 bytes at 4294967288 " + outside},
		{guest: "result_negative", kind: abi.FailureOutput, message: "result of 4294967295 bytes at 16 " + outside},
		{guest: "result_most", kind: abi.FailureOutput, message: outside},
		{guest: "result_all", kind: abi.FailureOutput, message: "result: msgpack type is not allowed here"},
		{guest: "buffer_null", kind: abi.FailureOutput, message: "buffer refused a request of"},
		{guest: "buffer_odd", kind: abi.FailureOutput, message: "buffer returned 1025: want 8-byte alignment"},
		{guest: "buffer_end", kind: abi.FailureOutput, message: "buffer returned 65536, but"},
		{guest: "buffer_over_end", kind: abi.FailureOutput, message: "buffer returned 65528, but"},
		{guest: "buffer_negative", kind: abi.FailureOutput, message: "buffer returned 4294967288, but"},
		{guest: "buffer_trap", kind: abi.FailureTrap, message: "unreachable"},
		{guest: "buffer_calls"},
	}
}

// messageAttacks return bytes that are no result.
func messageAttacks() []attack {
	out := []attack{
		{guest: "truncated", message: "msgpack ends too early"},
		{guest: "duplicate", message: "twice"},
		{guest: "array", message: "msgpack type is not allowed here"},
		{guest: "nil", message: "msgpack type is not allowed here"},
		{guest: "never", message: "msgpack type is not allowed here"},
		{guest: "utf8", message: "UTF-8"},
		{guest: "key_utf8", message: "UTF-8"},
		{guest: "nan", message: "msgpack type is not allowed here"},
		{guest: "nan_status", message: "finite"},
		{guest: "infinite", message: "finite"},
		{guest: "float", message: "msgpack type is not allowed here"},
		{guest: "uint64", message: "int64"},
		{guest: "uint64_status", message: "int64"},
		{guest: "negative", message: "after_ms"},
		{guest: "binary", message: "msgpack type is not allowed here"},
		{guest: "extension", message: "msgpack type is not allowed here"},
		{guest: "int_key", message: "want a string"},
		{guest: "array_lies", message: "msgpack ends too early"},
		{guest: "map_lies", message: "msgpack ends too early"},
		{guest: "string_lies", message: "msgpack ends too early"},
		{guest: "trailing", message: "bytes after the msgpack value"},
		{guest: "action", message: "explode"},
		{guest: "class", message: "msgpack type is not allowed here"},
		{guest: "apply_int", message: "msgpack type is not allowed here"},
		{guest: "deep", message: "nests deeper than 128"},
		{guest: "maps", message: "nests deeper than 128"},
		{guest: "long", message: "(result_bytes 4Mi)"},
		{guest: "children", message: "10000"},
	}
	for i := range out {
		out[i].guest, out[i].kind = "msgpack_"+out[i].guest, abi.FailureOutput
	}
	return append(
		out,
		attack{guest: "msgpack_int64"},
		attack{guest: "msgpack_keys"},
		attack{guest: "msgpack_message", message: "xxxx"},
		attack{guest: "msgpack_null_bytes", message: "x"},
		attack{guest: "map_keys", on: abi.ExportMap, kind: abi.FailureOutput, message: "keys"},
		attack{guest: "map_keys", on: abi.ExportFilter, kind: abi.FailureOutput, message: "filter returned 4294967295"},
		attack{guest: "policy_declares", on: abi.ExportErrorPolicy, kind: abi.FailureOutput, message: "error_policy declares objects"},
		attack{guest: "configure_garbage", on: onLoad, kind: abi.FailureOutput, message: "msgpack type is not allowed here"},
		attack{guest: "describe_garbage", on: onLoad, kind: abi.FailureOutput, message: "does not lie in memory"},
	)
}

// callAttacks misuse the host functions. Those guests trap where an answer is not
// the one that it should be.
func callAttacks() []attack {
	large := func(testing.TB) operation.API { return always(abi.Response{Body: make([]byte, abi.MaxBytes)}) }
	return []attack{
		{guest: "pointers"},
		{guest: "overlap"},
		{guest: "unreadable", api: clusterAPI},
		{guest: "ungranted", api: clusterAPI},
		{guest: "initialize_calls"},
		{guest: "map_calls", on: abi.ExportMap},
		{guest: "take", api: large},
	}
}

// floodAttacks write as much as they can to where others write too.
func floodAttacks() []attack {
	const perCall = 64 << 10 // bytes that one call logs, each line with 64 beside its text
	bounded := func(t *testing.T, w *world) {
		t.Helper()
		if w.log.lines == 0 || w.log.lines > perCall/64+8 || w.log.bytes > 8*perCall {
			t.Errorf("%d lines of %d bytes were logged", w.log.lines, w.log.bytes)
		}
	}
	return []attack{
		{guest: "flood_log", after: bounded},
		{guest: "flood_empty_lines", after: bounded},
		{guest: "flood_stdout", kind: abi.FailureTrap, message: "unreachable", after: bounded},
		{guest: "flood_line", after: bounded},
		{guest: "flood_events"},
		{guest: "flood_metrics", after: func(t *testing.T, w *world) {
			if w.sent != share.DefaultMetricSeries {
				t.Errorf("%d metrics were taken", w.sent)
			}
		}},
		{guest: "log_forged", after: notForged},
	}
}

// wasiAttacks look for a way out through WASI.
func wasiAttacks() []attack {
	return []attack{
		{guest: "exit", kind: abi.FailureTrap, message: "exited with code 3"},
		{guest: "exit_zero", kind: abi.FailureTrap, message: "exited with code 0"},
		{guest: "exit_buffer", kind: abi.FailureTrap, message: "exited with code 7"},
		{guest: "exit_initialize", on: onLoad, kind: abi.FailureTrap, message: "exited with code 0"},
		{guest: "files"},
		{guest: "streams"},
		{guest: "wasi_pointers"},
		{guest: "flood_vectors"},
	}
}

// loadAttacks are refused before they can be called.
func loadAttacks() []attack {
	return []attack{
		{guest: "start_trap", on: onLoad, kind: abi.FailureTrap, message: "unreachable"},
		{guest: "initialize_trap", on: onLoad, kind: abi.FailureTrap, message: "unreachable"},
		{guest: "data_outside", on: onLoad, message: "out of bounds memory access"},
		{guest: "wrong_kinds", on: onLoad, message: "export[reconcile]: found a table, expected (i32, i32) -> (i64)"},
		{guest: "wrong_types", on: onLoad, message: "export[reconcile]: found (i32, i32) -> (i32, i32), expected (i32, i32) -> (i64)"},
		{guest: "wrong_imports", on: onLoad, message: `import[env.system]: this host has no module "env"`},
	}
}
