//! Reads and writes the msgpack of the reconciler ABI (abi/ABI.md, section 3)
//! in place: reading a field of a message builds no map and copies nothing.
//!
//! A view is a slice that starts with a value; bytes may follow it. Functions
//! that read a view answer for whatever bytes there are: they never panic and
//! never trust a length that the bytes do not back.

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
pub(crate) use read::{len, read_bool, read_float, read_int, read_str, trim, type_of};
pub(crate) use ser::{append, serialize_raw};
pub(crate) use write::{append_array, append_int, append_str, Message};

/// How long one message may be, in bytes.
pub(crate) const MAX_BYTES: usize = 4 << 20;
/// How deep maps and arrays may nest.
pub(crate) const MAX_DEPTH: usize = 128;

/// The type of a value, as far as the ABI tells types apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// There is no value that can be read.
    Absent,
    /// Nothing, said aloud: null.
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
}

#[cfg(test)]
mod tests;
