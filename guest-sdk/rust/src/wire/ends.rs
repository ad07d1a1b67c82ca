//! Where the largest value ends that a call has passed over in its message.
//!
//! To read a field is to pass over all that stands before it, and the largest part of
//! most objects stands before fields that are often read. A call walks through it once.

use std::cell::Cell;
use std::marker::PhantomData;

/// A smaller value is passed over as fast as it is found here.
const LARGE: usize = 256;

/// Places in memory; all are 0 where there is no message.
#[derive(Clone, Copy)]
struct Known {
    /// The message, from where to where.
    message: (usize, usize),
    /// The value, likewise.
    value: (usize, usize),
}

const NONE: Known = Known { message: (0, 0), value: (0, 0) };

thread_local! {
    static KNOWN: Cell<Known> = const { Cell::new(NONE) };
}

/// Has the end of a value in a message known as long as it lives. It borrows the
/// message, which thus stays as it is: an address stands for a value.
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

/// The position after the value at `pos`, if it is known.
pub(super) fn known(b: &[u8], pos: usize) -> Option<usize> {
    let (start, end) = KNOWN.with(Cell::get).value;
    let base = b.as_ptr() as usize;
    (start == base.wrapping_add(pos)).then(|| end.wrapping_sub(base))
}

/// Notes where the value at `pos` ends, if it is larger than the one that is known. A
/// value around that one is passed over fast as it is.
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
