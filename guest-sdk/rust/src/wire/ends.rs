// SPDX-License-Identifier: Apache-2.0
//! Caches the end of the largest value that a call has skipped in its message.
//!
//! To read a field, all values before it must be skipped, and the largest part of most
//! objects precedes fields that are read often. A call scans that part once.

use std::cell::Cell;
use std::marker::PhantomData;

/// The size below which skipping a value is as fast as a lookup here.
const LARGE: usize = 256;

/// Addresses in memory; all are 0 if there is no message.
#[derive(Clone, Copy)]
struct Known {
    /// The start and end of the message.
    message: (usize, usize),
    /// The start and end of the value.
    value: (usize, usize),
}

const NONE: Known = Known { message: (0, 0), value: (0, 0) };

thread_local! {
    static KNOWN: Cell<Known> = const { Cell::new(NONE) };
}

/// Enables the cache for a message as long as it lives. It borrows the message, which
/// thus cannot change, so an address identifies a value.
pub(crate) struct Ends<'a>(PhantomData<&'a [u8]>);

impl<'a> Ends<'a> {
    pub(crate) fn of(msg: &'a [u8]) -> Self {
        let from = msg.as_ptr() as usize;
        KNOWN.with(|k| k.set(Known { message: (from, from + msg.len()), ..NONE }));
        Ends(PhantomData)
    }
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        KNOWN.with(|k| k.set(NONE));
    }
}

/// The position after the value at `pos`, if it is in the cache.
pub(super) fn known(b: &[u8], pos: usize) -> Option<usize> {
    let (start, end) = KNOWN.with(Cell::get).value;
    let base = b.as_ptr() as usize;
    (start == base.wrapping_add(pos)).then(|| end.wrapping_sub(base))
}

/// Records the end of the value at `pos`, if it is larger than the recorded value. A
/// value that contains the recorded one is skipped fast anyway.
pub(super) fn note(b: &[u8], pos: usize, end: usize) {
    if end - pos < LARGE {
        return;
    }
    let base = b.as_ptr() as usize;
    let (start, end) = (base + pos, base + end);
    KNOWN.with(|k| {
        let Known { message, value } = k.get();
        let larger = end - start > value.1 - value.0 && (start > value.0 || value.1 > end);
        if larger && message.0 <= start && end <= message.1 {
            k.set(Known { message, value: (start, end) });
        }
    });
}
