// SPDX-License-Identifier: Apache-2.0
use super::read::{len, skip, str_bytes, trim, type_of};
use super::write::{append_map, append_str};
use super::{CodecError, Type};

/// Appends the value at the start of `v` to `dst`, with `val`, which is one complete
/// value, at the path. Missing maps on the path are created. Everything else stays
/// unchanged and in its order; a new key comes last. A step into something other than a
/// map is an error.
pub(crate) fn set(dst: &mut Vec<u8>, v: &[u8], path: &[&str], val: &[u8]) -> Result<(), CodecError> {
    let (key, rest) = match path.split_first() {
        None => {
            dst.extend_from_slice(val);
            return Ok(());
        }
        Some((key, rest)) => (*key, rest),
    };
    match type_of(v) {
        Type::Map => {}
        Type::Nil | Type::Absent => {
            append_map(dst, 1);
            append_str(dst, key);
            return set(dst, &[], rest, val);
        }
        _ => return Err(CodecError::type_not_allowed().within(key)),
    }
    let place = find(v, key).ok_or_else(CodecError::truncated)?;
    match place.entry {
        None => {
            append_map(dst, place.n + 1);
            dst.extend_from_slice(&v[place.first..place.end]);
            append_str(dst, key);
            set(dst, &[], rest, val).map_err(|e| e.within(key))
        }
        Some(e) => {
            dst.extend_from_slice(&v[..e.value]);
            set(dst, &v[e.value..e.next], rest, val).map_err(|e| e.within(key))?;
            dst.extend_from_slice(&v[e.next..place.end]);
            Ok(())
        }
    }
}

/// Appends the value at the start of `v` to `dst`, without the value at the path. If that
/// value does not exist, it appends the value of `v` unchanged.
pub(crate) fn remove(dst: &mut Vec<u8>, v: &[u8], path: &[&str]) {
    let found = match path.split_first() {
        Some((key, rest)) if type_of(v) == Type::Map => find(v, key).map(|place| (place, rest)),
        _ => None,
    };
    match found {
        Some((Place { n, first, end, entry: Some(e) }, rest)) => {
            if rest.is_empty() {
                append_map(dst, n - 1);
                dst.extend_from_slice(&v[first..e.key]);
            } else {
                dst.extend_from_slice(&v[..e.value]);
                remove(dst, &v[e.value..e.next], rest);
            }
            dst.extend_from_slice(&v[e.next..end]);
        }
        _ => dst.extend_from_slice(trim(v)),
    }
}

/// The positions of an entry of a map: the first entry, the end of the map, and the
/// entry.
struct Place {
    n: usize,
    first: usize,
    end: usize,
    entry: Option<Entry>,
}

/// The positions of an entry's key, of its value, and of the end of the value.
struct Entry {
    key: usize,
    value: usize,
    next: usize,
}

fn find(v: &[u8], key: &str) -> Option<Place> {
    let end = skip(v, 0)?;
    let (n, first) = len(v)?;
    let mut pos = first;
    for _ in 0..n {
        let (k, value) = str_bytes(v, pos)?;
        let next = skip(v, value)?;
        if k == key.as_bytes() {
            return Some(Place { n, first, end, entry: Some(Entry { key: pos, value, next }) });
        }
        pos = next;
    }
    Some(Place { n, first, end, entry: None })
}
