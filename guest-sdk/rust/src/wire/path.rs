// SPDX-License-Identifier: Apache-2.0
use super::read::{len, skip, str_bytes, type_of};
use super::Type;

/// A view of the value under `key` in the map at the start of `v`. It is empty if `v` is
/// not a map or lacks the key.
pub(crate) fn get<'a>(v: &'a [u8], key: &str) -> &'a [u8] {
    find(v, key).unwrap_or(&[])
}

fn find<'a>(v: &'a [u8], key: &str) -> Option<&'a [u8]> {
    if type_of(v) != Type::Map {
        return None;
    }
    let (n, mut pos) = len(v)?;
    for i in (0..n).rev() {
        let (k, next) = str_bytes(v, pos)?;
        if k == key.as_bytes() {
            return v.get(next..);
        }
        if i > 0 {
            pos = skip(v, next)?; // bytes after the last value do not matter
        }
    }
    None
}

/// Follows a path of map keys. The result is empty if a step does not exist.
pub(crate) fn at<'a>(v: &'a [u8], path: &[&str]) -> &'a [u8] {
    path.iter().fold(v, |v, key| get(v, key))
}

/// Iterates over the entries of the map or array at the start of `v`. There are none if
/// it is neither.
pub(crate) fn walk(v: &[u8]) -> Walk<'_> {
    let (left, pos) = len(v).unwrap_or((0, 0));
    Walk { v, left, pos, started: false, map: type_of(v) == Type::Map, bad: false }
}

/// The entries of a map, as key and value, or of an array, as "" and value.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    v: &'a [u8],
    left: usize,
    /// The position of the current value, or of the first entry.
    pos: usize,
    started: bool,
    map: bool,
    bad: bool,
}

impl<'a> Walk<'a> {
    /// Whether the iteration ended before the last entry.
    pub(crate) fn bad(&self) -> bool {
        self.bad
    }

    fn step(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let mut next = if self.started { skip(self.v, self.pos)? } else { self.pos };
        let mut key: &[u8] = &[];
        if self.map {
            let (k, value) = str_bytes(self.v, next)?;
            key = k;
            next = value;
        }
        self.started = true;
        self.pos = next;
        let value = self.v.get(next..)?;
        (!value.is_empty()).then_some((key, value))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || self.bad {
            return None;
        }
        self.left -= 1;
        let entry = self.step();
        self.bad = entry.is_none();
        entry
    }
}
