// SPDX-License-Identifier: Apache-2.0

package meter

// Names of refused instructions, so that the error can name the proposal that a toolchain must not
// use. wazero compiles some of them if an experimental feature is on, but this host never enables
// one.
var (
	refusedBase = map[uint32]string{
		0x06: "try", 0x07: "catch", 0x08: "throw", 0x09: "rethrow", 0x0a: "throw_ref",
		0x14: "call_ref", 0x15: "return_call_ref", 0x18: "delegate", 0x19: "catch_all", 0x1f: "try_table",
		0xd3: "ref.eq", 0xd4: "ref.as_non_null", 0xd5: "br_on_null", 0xd6: "br_on_non_null",
	}
	refusedMisc = map[uint32]string{
		0x12: "memory.discard", 0x13: "i64.add128", 0x14: "i64.sub128", 0x15: "i64.mul_wide_s", 0x16: "i64.mul_wide_u",
	}
	refusedVector = map[uint32]string{
		0x100: "i8x16.relaxed_swizzle", 0x101: "i32x4.relaxed_trunc_f32x4_s", 0x102: "i32x4.relaxed_trunc_f32x4_u",
		0x103: "i32x4.relaxed_trunc_f64x2_s_zero", 0x104: "i32x4.relaxed_trunc_f64x2_u_zero",
		0x105: "f32x4.relaxed_madd", 0x106: "f32x4.relaxed_nmadd", 0x107: "f64x2.relaxed_madd", 0x108: "f64x2.relaxed_nmadd",
		0x109: "i8x16.relaxed_laneselect", 0x10a: "i16x8.relaxed_laneselect", 0x10b: "i32x4.relaxed_laneselect", 0x10c: "i64x2.relaxed_laneselect",
		0x10d: "f32x4.relaxed_min", 0x10e: "f32x4.relaxed_max", 0x10f: "f64x2.relaxed_min", 0x110: "f64x2.relaxed_max",
		0x111: "i16x8.relaxed_q15mulr_s", 0x112: "i16x8.relaxed_dot_i8x16_i7x16_s", 0x113: "i32x4.relaxed_dot_i8x16_i7x16_add_s",
	}
)

// gcPrefix is the first byte of the instructions of garbage-collected types.
const gcPrefix = 0xfb

// refusedName returns the name of a refused instruction, or "".
func refusedName(prefix byte, op uint32) string {
	switch prefix {
	case 0:
		return refusedBase[op]
	case opMisc:
		return refusedMisc[op]
	case opVector:
		return refusedVector[op]
	case gcPrefix:
		return "of garbage-collected types"
	}
	return ""
}
