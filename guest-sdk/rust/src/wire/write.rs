// SPDX-License-Identifier: Apache-2.0
use super::read::OPAQUE;

/// Appends nil.
pub(crate) fn append_nil(dst: &mut Vec<u8>) {
    dst.push(0xc0);
}

/// Appends a bool.
pub(crate) fn append_bool(dst: &mut Vec<u8>, b: bool) {
    dst.push(if b { 0xc3 } else { 0xc2 });
}

/// Appends an integer in the fewest bytes.
pub(crate) fn append_int(dst: &mut Vec<u8>, i: i64) {
    match i {
        -32..=0x7f => dst.push(i as u8),
        0x80..=0xff => dst.extend_from_slice(&[0xcc, i as u8]),
        0x100..=0xffff => tagged(dst, 0xcd, &(i as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => tagged(dst, 0xce, &(i as u32).to_be_bytes()),
        -0x80..=-33 => dst.extend_from_slice(&[0xd0, i as u8]),
        -0x8000..=-0x81 => tagged(dst, 0xd1, &(i as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => tagged(dst, 0xd2, &(i as i32).to_be_bytes()),
        _ => tagged(dst, 0xd3, &i.to_be_bytes()),
    }
}

/// Appends a float, which must be finite.
pub(crate) fn append_float(dst: &mut Vec<u8>, f: f64) {
    tagged(dst, 0xcb, &f.to_bits().to_be_bytes());
}

/// Appends a string.
pub(crate) fn append_str(dst: &mut Vec<u8>, s: &str) {
    let n = s.len();
    match n {
        0..=31 => dst.push(0xa0 | n as u8),
        32..=0xff => dst.extend_from_slice(&[0xd9, n as u8]),
        0x100..=0xffff => tagged(dst, 0xda, &(n as u16).to_be_bytes()),
        _ => tagged(dst, 0xdb, &(n as u32).to_be_bytes()),
    }
    dst.extend_from_slice(s.as_bytes());
}

/// Appends opaque JSON.
pub(crate) fn append_opaque(dst: &mut Vec<u8>, text: &str) {
    let n = text.len();
    match n {
        0..=0xff => dst.extend_from_slice(&[0xc7, n as u8]),
        0x100..=0xffff => tagged(dst, 0xc8, &(n as u16).to_be_bytes()),
        _ => tagged(dst, 0xc9, &(n as u32).to_be_bytes()),
    }
    dst.push(OPAQUE);
    dst.extend_from_slice(text.as_bytes());
}

/// Appends the header of a map of `n` entries.
pub(crate) fn append_map(dst: &mut Vec<u8>, n: usize) {
    counted(dst, n, 0x80, 0xde);
}

/// Appends the header of an array of `n` elements.
pub(crate) fn append_array(dst: &mut Vec<u8>, n: usize) {
    counted(dst, n, 0x90, 0xdc);
}

fn counted(dst: &mut Vec<u8>, n: usize, small: u8, wide: u8) {
    match n {
        0..=15 => dst.push(small | n as u8),
        16..=0xffff => tagged(dst, wide, &(n as u16).to_be_bytes()),
        _ => tagged(dst, wide + 1, &(n as u32).to_be_bytes()),
    }
}

fn tagged(dst: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    dst.push(tag);
    dst.extend_from_slice(bytes);
}

/// A map that is written entry by entry, as a message of the SDK. Entries with an empty
/// value are left out.
pub(crate) struct Message<'a> {
    /// The destination.
    pub(crate) dst: &'a mut Vec<u8>,
    start: usize,
    n: u16,
}

impl<'a> Message<'a> {
    /// Starts a map at the end of `dst`.
    pub(crate) fn new(dst: &'a mut Vec<u8>) -> Self {
        let start = dst.len();
        dst.extend_from_slice(&[0xde, 0, 0]);
        Message { dst, start, n: 0 }
    }

    /// Writes a key; the caller must append its value to `dst`.
    pub(crate) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.n += 1;
        append_str(self.dst, key);
        self.dst
    }

    /// Writes a string, even if it is empty.
    pub(crate) fn text(&mut self, key: &str, s: &str) {
        append_str(self.key(key), s);
    }

    /// Writes a string, if it is not empty.
    pub(crate) fn str(&mut self, key: &str, s: &str) {
        if !s.is_empty() {
            self.text(key, s);
        }
    }

    /// Writes an integer, if it is not 0.
    pub(crate) fn int(&mut self, key: &str, i: i64) {
        if i != 0 {
            append_int(self.key(key), i);
        }
    }

    /// Writes a bool, if it is true.
    pub(crate) fn bool(&mut self, key: &str, b: bool) {
        if b {
            append_bool(self.key(key), b);
        }
    }

    /// Writes a list of strings, if it is not empty.
    pub(crate) fn strs(&mut self, key: &str, list: &[String]) {
        if list.is_empty() {
            return;
        }
        let dst = self.key(key);
        append_array(dst, list.len());
        list.iter().for_each(|s| append_str(dst, s));
    }

    /// Writes a list of maps, if it is not empty.
    pub(crate) fn maps<T>(&mut self, key: &str, items: &[T], write: impl Fn(&T, &mut Message<'_>)) {
        if items.is_empty() {
            return;
        }
        let dst = self.key(key);
        append_array(dst, items.len());
        items.iter().for_each(|item| write(item, &mut Message::new(dst)));
    }

    /// Writes a nested map.
    pub(crate) fn map(&mut self, key: &str, f: impl FnOnce(&mut Message<'_>)) {
        let mut inner = Message::new(self.key(key));
        f(&mut inner);
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        self.dst[self.start + 1..self.start + 3].copy_from_slice(&self.n.to_be_bytes());
    }
}
