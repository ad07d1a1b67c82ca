// SPDX-License-Identifier: Apache-2.0
use super::read::{len, read_float, read_int, read_opaque, skip, str_bytes, type_of};
use super::{CodecError, Type, MAX_BYTES, MAX_DEPTH};

/// Checks that `b` is exactly one value that may cross the sandbox boundary (abi/ABI.md,
/// section 3). It does not look for duplicate keys; the host does.
pub(crate) fn check(b: &[u8]) -> Result<(), CodecError> {
    if b.len() > MAX_BYTES {
        return Err(CodecError::too_large());
    }
    match check_at(b, 0, 0)? {
        end if end == b.len() => Ok(()),
        _ => Err(CodecError::new("bytes after the msgpack value")),
    }
}

/// The position after the value at `pos`.
fn check_at(b: &[u8], pos: usize, depth: usize) -> Result<usize, CodecError> {
    let v = b.get(pos..).filter(|v| !v.is_empty()).ok_or_else(CodecError::truncated)?;
    let t = type_of(v);
    if t != Type::Map && t != Type::Array {
        check_scalar(t, v)?;
        return skip(b, pos).ok_or_else(CodecError::truncated);
    }
    if depth >= MAX_DEPTH {
        return Err(CodecError::too_deep());
    }
    let (n, first) = len(v).ok_or_else(CodecError::truncated)?;
    let mut pos = pos + first;
    for _ in 0..n {
        if t == Type::Map {
            match b.get(pos..).map(type_of) {
                Some(Type::String) => pos = check_at(b, pos, depth + 1)?,
                Some(Type::Absent) | None if pos >= b.len() => return Err(CodecError::truncated()),
                _ => return Err(CodecError::type_not_allowed()),
            }
        }
        pos = check_at(b, pos, depth + 1)?;
    }
    Ok(pos)
}

fn check_scalar(t: Type, v: &[u8]) -> Result<(), CodecError> {
    if t == Type::Absent {
        return Err(CodecError::type_not_allowed());
    }
    if skip(v, 0).is_none() {
        return Err(CodecError::truncated());
    }
    match t {
        Type::Int if read_int(v).is_none() => Err(CodecError::number()),
        Type::Float if !read_float(v).map_or(false, f64::is_finite) => Err(CodecError::number()),
        Type::String if str_bytes(v, 0).map_or(true, |(s, _)| std::str::from_utf8(s).is_err()) => {
            Err(CodecError::utf8())
        }
        Type::Opaque if read_opaque(v).is_none() => Err(CodecError::utf8()),
        _ => Ok(()),
    }
}
