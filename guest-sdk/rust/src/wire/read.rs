// SPDX-License-Identifier: Apache-2.0
use super::{ends, Type};

/// The header of a value: its size, the size of the payload after it, and the number of
/// values that follow (two for each key of a map).
struct Head {
    size: usize,
    payload: usize,
    values: usize,
}

/// Maps the first byte of a value to the size up to its first element (lower 6 bits) and
/// to the number of values that follow (other bits), because skipping values is the main
/// cost of reading a field. 0 stands for headers with a length after the first byte.
const SHAPES: [u16; 256] = shapes();

const fn shapes() -> [u16; 256] {
    let mut table = [0u16; 256];
    let mut c = 0;
    while c < 256 {
        let byte = c as u16;
        table[c] = match c {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => 1,
            0x80..=0x8f => 1 | (2 * (byte & 0x0f)) << 6,
            0x90..=0x9f => 1 | (byte & 0x0f) << 6,
            0xa0..=0xbf => 1 + (byte & 0x1f),
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
            _ => 0,
        };
        c += 1;
    }
    table
}

/// The type of the value at the start of `v`.
pub(crate) fn type_of(v: &[u8]) -> Type {
    match v.first() {
        None => Type::Absent,
        Some(c) => match c {
            0x00..=0x7f | 0xe0..=0xff | 0xcc..=0xd3 => Type::Int,
            0x80..=0x8f | 0xde | 0xdf => Type::Map,
            0x90..=0x9f | 0xdc | 0xdd => Type::Array,
            0xa0..=0xbf | 0xd9..=0xdb => Type::String,
            0xc0 => Type::Nil,
            0xc2 | 0xc3 => Type::Bool,
            0xca | 0xcb => Type::Float,
            0xc7..=0xc9 => Type::Opaque,
            _ => Type::Absent,
        },
    }
}

fn number(b: &[u8], pos: usize, width: usize) -> Option<u64> {
    let bytes = b.get(pos..pos.checked_add(width)?)?;
    Some(bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
}

fn head(b: &[u8], pos: usize) -> Option<Head> {
    let c = *b.get(pos)?;
    let shape = usize::from(SHAPES[usize::from(c)]);
    if shape == 0 {
        return wide_head(b, pos, c);
    }
    Some(Head { size: 1, payload: (shape & 0x3f) - 1, values: shape >> 6 })
}

/// `head` for strings, arrays and maps with a length after the first byte. Each byte,
/// element or key takes at least one byte, so a number above the remaining bytes is
/// invalid. Refusing it here ensures that no sum overflows a usize.
fn wide_head(b: &[u8], pos: usize, c: u8) -> Option<Head> {
    if (0xc7..=0xc9).contains(&c) {
        return opaque_head(b, pos, c);
    }
    let width = match c {
        0xd9 => 1,
        0xda | 0xdc | 0xde => 2,
        0xdb | 0xdd | 0xdf => 4,
        _ => return None,
    };
    let count = usize::try_from(number(b, pos + 1, width)?).ok()?;
    if count > b.len() - pos - 1 - width {
        return None;
    }
    let (payload, values) = match c {
        0xd9..=0xdb => (count, 0),
        0xdc | 0xdd => (0, count),
        _ => (0, 2 * count),
    };
    Some(Head { size: 1 + width, payload, values })
}

/// The type of extension of opaque JSON.
pub(super) const OPAQUE: u8 = 1;

/// `head` for opaque JSON: a length of 1, 2 or 4 bytes, and the type of extension.
fn opaque_head(b: &[u8], pos: usize, c: u8) -> Option<Head> {
    let width = 1 << (c - 0xc7);
    let payload = usize::try_from(number(b, pos + 1, width)?).ok()?;
    let size = width + 2;
    let valid = b.get(pos + size - 1) == Some(&OPAQUE) && payload <= b.len() - pos - size;
    valid.then_some(Head { size, payload, values: 0 })
}

/// The text of the opaque JSON at the start of `v`.
pub(crate) fn read_opaque(v: &[u8]) -> Option<&str> {
    if type_of(v) != Type::Opaque {
        return None;
    }
    let h = head(v, 0)?;
    std::str::from_utf8(&v[h.size..h.size + h.payload]).ok()
}

/// The position after the value at `start`; `None` if the value is incomplete. It does
/// not recurse and does not look into strings.
pub(crate) fn skip(b: &[u8], start: usize) -> Option<usize> {
    let (mut pos, mut need) = (start, 1);
    while need > 0 {
        let c = *b.get(pos)?;
        let shape = usize::from(SHAPES[usize::from(c)]);
        if shape.wrapping_sub(1) < 0x3f {
            pos += shape; // no value follows it: the most frequent case
            need -= 1;
            continue;
        }
        if let Some(end) = ends::known(b, pos) {
            pos = end;
            need -= 1;
            continue;
        }
        if shape != 0 {
            pos += 1;
            need = need + (shape >> 6) - 1;
            continue;
        }
        let h = wide_head(b, pos, c)?;
        pos += h.size + h.payload;
        need += h.values;
        need -= 1;
        // Every remaining value takes at least one byte. Without this check, invalid
        // headers could overflow the sum.
        if need > b.len().checked_sub(pos)? {
            return None;
        }
    }
    if pos > b.len() {
        return None;
    }
    ends::note(b, start, pos);
    Some(pos)
}

/// The value at the start of `v`, without the bytes after it; empty if there is none.
pub(crate) fn trim(v: &[u8]) -> &[u8] {
    skip(v, 0).map_or(&[], |end| &v[..end])
}

/// The number of elements of an array or of keys of a map, and the position of the first
/// one; `None` if `v` is neither.
pub(crate) fn len(v: &[u8]) -> Option<(usize, usize)> {
    let t = type_of(v);
    if t != Type::Map && t != Type::Array {
        return None;
    }
    let h = head(v, 0)?;
    Some((if t == Type::Map { h.values / 2 } else { h.values }, h.size))
}

/// The bytes of the string at `pos` and the position after it.
pub(crate) fn str_bytes(v: &[u8], pos: usize) -> Option<(&[u8], usize)> {
    let c = *v.get(pos)?;
    let (start, n) = match c {
        0xa0..=0xbf => (pos + 1, usize::from(c & 0x1f)),
        0xd9..=0xdb => {
            let h = wide_head(v, pos, c)?;
            (pos + h.size, h.payload)
        }
        _ => return None,
    };
    Some((v.get(start..start + n)?, start + n))
}

/// The string at the start of `v`; `None` if there is none, or if it is not UTF-8.
pub(crate) fn read_str(v: &[u8]) -> Option<&str> {
    std::str::from_utf8(str_bytes(v, 0)?.0).ok()
}

/// The bool at the start of `v`.
pub(crate) fn read_bool(v: &[u8]) -> Option<bool> {
    match v.first() {
        Some(0xc3) => Some(true),
        Some(0xc2) => Some(false),
        _ => None,
    }
}

/// The integer at the start of `v`. It accepts a float with an integral value, because
/// JSON does not distinguish 1 from 1.0.
pub(crate) fn read_int(v: &[u8]) -> Option<i64> {
    match type_of(v) {
        Type::Int => int(v),
        Type::Float => {
            let f = read_float(v)?;
            // 2^63 fits into a float exactly, the largest int64 does not.
            let whole = f.trunc() == f && (i64::MIN as f64..-(i64::MIN as f64)).contains(&f);
            whole.then_some(f as i64)
        }
        _ => None,
    }
}

fn int(v: &[u8]) -> Option<i64> {
    let c = v[0];
    if c <= 0x7f || c >= 0xe0 {
        return Some(i64::from(c as i8));
    }
    let width = 1 << (c & 3); // 0xcc.. and 0xd0.. are both multiples of four
    let u = number(v, 1, width)?;
    if c <= 0xcf {
        return i64::try_from(u).ok();
    }
    let shift = 64 - 8 * width as u32;
    Some((u << shift) as i64 >> shift)
}

/// The number at the start of `v`. It also accepts an integer.
pub(crate) fn read_float(v: &[u8]) -> Option<f64> {
    match v.first()? {
        0xca => Some(f64::from(f32::from_bits(number(v, 1, 4)? as u32))),
        0xcb => Some(f64::from_bits(number(v, 1, 8)?)),
        _ if type_of(v) == Type::Int => int(v).map(|i| i as f64),
        _ => None,
    }
}
