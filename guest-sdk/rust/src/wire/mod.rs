// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the msgpack of the reconciler ABI (abi/ABI.md, section 3) in place:
//! to read a field of a message it builds no map and copies nothing.
//!
//! A view is a slice that starts with a value; other bytes may follow it. Functions that
//! read a view accept any bytes: they never panic, and never trust a length that exceeds
//! the available bytes.

mod check;
mod de;
mod edit;
mod ends;
mod error;
mod path;
mod read;
mod ser;
mod write;

pub(crate) use check::check;
pub(crate) use de::{from_slice, RAW};
pub(crate) use edit::{remove, set};
pub(crate) use ends::Ends;
pub use error::CodecError;
pub(crate) use path::{at, get, walk, Walk};
pub(crate) use read::{len, read_bool, read_float, read_int, read_opaque, read_str, trim, type_of};
pub(crate) use ser::{append, serialize_raw};
pub(crate) use write::{append_array, append_int, append_opaque, append_str, Message};

/// The maximum size of a message, in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;
/// The maximum nesting depth of maps and arrays.
pub(crate) const MAX_DEPTH: usize = 128;

/// The type of a value, as the ABI distinguishes types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// There is no valid value.
    Absent,
    /// An explicit null.
    Nil,
    /// A bool.
    Bool,
    /// An integer of 64 bits.
    Int,
    /// A floating point number.
    Float,
    /// UTF-8 text.
    String,
    /// A list.
    Array,
    /// A map with string keys.
    Map,
    /// The text of JSON; see [`OpaqueJson`](crate::OpaqueJson).
    Opaque,
}

#[cfg(test)]
mod tests;
