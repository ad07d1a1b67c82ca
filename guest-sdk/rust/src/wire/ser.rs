// SPDX-License-Identifier: Apache-2.0
use serde::ser::{self, Serialize};

use super::write::{append_array, append_bool, append_float, append_int, append_map, append_nil, append_str};
use super::{CodecError, MAX_DEPTH};

/// Appends the msgpack of `value`. A value that cannot cross the sandbox boundary
/// (abi/ABI.md, section 3) is an error, and `dst` is then unchanged.
pub(crate) fn append<T: Serialize + ?Sized>(dst: &mut Vec<u8>, value: &T) -> Result<(), CodecError> {
    let start = dst.len();
    let result = value.serialize(Serializer { dst, depth: 0, raw: false });
    if result.is_err() {
        dst.truncate(start);
    }
    result
}

/// The name of the newtype struct that wraps a value that is already msgpack; see
/// `serialize_raw`.
const RAW: &str = "$wasmctl::raw";

/// Serializes `walked`, whose msgpack is `raw`: as these bytes here, and entry by entry
/// to other formats.
pub(crate) fn serialize_raw<S: ser::Serializer, T: Serialize>(s: S, raw: &[u8], walked: &T) -> Result<S::Ok, S::Error> {
    s.serialize_newtype_struct(RAW, &Raw { raw, walked })
}

struct Raw<'a, T> {
    raw: &'a [u8],
    walked: &'a T,
}

impl<T: Serialize> Serialize for Raw<'_, T> {
    fn serialize<S: ser::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            return self.walked.serialize(s);
        }
        s.serialize_bytes(self.raw)
    }
}

struct Serializer<'a> {
    dst: &'a mut Vec<u8>,
    depth: usize,
    /// Whether bytes are msgpack to copy unchanged.
    raw: bool,
}

impl<'a> Serializer<'a> {
    /// Starts a map or an array whose length may be known only at the end.
    fn open(self, n: Option<usize>, map: bool) -> Result<Compound<'a>, CodecError> {
        if self.depth >= MAX_DEPTH {
            return Err(CodecError::too_deep());
        }
        let start = self.dst.len();
        match (n, map) {
            (Some(n), true) => append_map(self.dst, n),
            (Some(n), false) => append_array(self.dst, n),
            (None, true) => self.dst.extend_from_slice(&[0xdf, 0, 0, 0, 0]),
            (None, false) => self.dst.extend_from_slice(&[0xdd, 0, 0, 0, 0]),
        }
        Ok(Compound {
            dst: self.dst,
            depth: self.depth + 1,
            patch: n.is_none().then_some(start),
            n: 0,
            key: String::new(),
        })
    }

    /// Starts the map {variant: ...} of an enum.
    fn variant(self, variant: &str) -> Result<Self, CodecError> {
        append_map(self.dst, 1);
        append_str(self.dst, variant);
        Ok(Serializer { dst: self.dst, depth: self.depth + 1, raw: false })
    }
}

macro_rules! integers {
    ($($name:ident $t:ty),*) => {$(
        fn $name(self, v: $t) -> Result<(), CodecError> {
            append_int(self.dst, i64::try_from(v).map_err(|_| CodecError::number())?);
            Ok(())
        }
    )*};
}

#[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
impl<'a> ser::Serializer for Serializer<'a> {
    type Ok = ();
    type Error = CodecError;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    integers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64);
    integers!(serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64);

    fn serialize_bool(self, v: bool) -> Result<(), CodecError> {
        append_bool(self.dst, v);
        Ok(())
    }

    fn serialize_f32(self, v: f32) -> Result<(), CodecError> {
        self.serialize_f64(f64::from(v))
    }

    fn serialize_f64(self, v: f64) -> Result<(), CodecError> {
        if !v.is_finite() {
            return Err(CodecError::number());
        }
        append_float(self.dst, v);
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), CodecError> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<(), CodecError> {
        append_str(self.dst, v);
        Ok(())
    }

    fn is_human_readable(&self) -> bool {
        !self.raw
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), CodecError> {
        if self.raw {
            self.dst.extend_from_slice(if bytes.is_empty() { &[0xc0] } else { bytes });
            return Ok(());
        }
        Err(CodecError::new("bytes do not cross the sandbox boundary: send them as a string, in base64 as a Secret has them"))
    }

    fn serialize_none(self) -> Result<(), CodecError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), CodecError> {
        v.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), CodecError> {
        append_nil(self.dst);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), CodecError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), CodecError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, v: &T) -> Result<(), CodecError> {
        v.serialize(Serializer { raw: name == RAW, ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        v: &T,
    ) -> Result<(), CodecError> {
        v.serialize(self.variant(variant)?)
    }

    fn serialize_seq(self, n: Option<usize>) -> Result<Compound<'a>, CodecError> {
        self.open(n, false)
    }

    fn serialize_tuple(self, n: usize) -> Result<Compound<'a>, CodecError> {
        self.open(Some(n), false)
    }

    fn serialize_tuple_struct(self, _: &'static str, n: usize) -> Result<Compound<'a>, CodecError> {
        self.open(Some(n), false)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        n: usize,
    ) -> Result<Compound<'a>, CodecError> {
        self.variant(variant)?.open(Some(n), false)
    }

    fn serialize_map(self, n: Option<usize>) -> Result<Compound<'a>, CodecError> {
        self.open(n, true)
    }

    fn serialize_struct(self, _: &'static str, n: usize) -> Result<Compound<'a>, CodecError> {
        self.open(Some(n), true)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        n: usize,
    ) -> Result<Compound<'a>, CodecError> {
        self.variant(variant)?.open(Some(n), true)
    }
}

/// A map or an array that is being written.
struct Compound<'a> {
    dst: &'a mut Vec<u8>,
    depth: usize,
    /// The position of the header whose length is filled in at the end.
    patch: Option<usize>,
    n: u32,
    /// The key of the current entry, for errors.
    key: String,
}

impl Compound<'_> {
    fn value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), CodecError> {
        self.n += 1;
        v.serialize(Serializer { dst: self.dst, depth: self.depth, raw: false })
    }

    fn element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), CodecError> {
        let i = self.n;
        self.value(v).map_err(|e| e.within(i))
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, v: &T) -> Result<(), CodecError> {
        append_str(self.dst, key);
        self.value(v).map_err(|e| e.within(key))
    }

    fn close(self) -> Result<(), CodecError> {
        if let Some(at) = self.patch {
            self.dst[at + 1..at + 5].copy_from_slice(&self.n.to_be_bytes());
        }
        Ok(())
    }
}

macro_rules! elements {
    ($($t:ident $f:ident),*) => {$(
        impl ser::$t for Compound<'_> {
            type Ok = ();
            type Error = CodecError;

            fn $f<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), CodecError> {
                self.element(v)
            }

            fn end(self) -> Result<(), CodecError> {
                self.close()
            }
        }
    )*};
}

elements!(SerializeSeq serialize_element, SerializeTuple serialize_element);
elements!(SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

macro_rules! fields {
    ($($t:ident),*) => {$(
        impl ser::$t for Compound<'_> {
            type Ok = ();
            type Error = CodecError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, v: &T) -> Result<(), CodecError> {
                self.field(key, v)
            }

            fn end(self) -> Result<(), CodecError> {
                self.close()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = CodecError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CodecError> {
        let start = self.dst.len();
        key.serialize(Serializer { dst: self.dst, depth: self.depth, raw: false })?;
        match super::read::read_str(&self.dst[start..]) {
            Some(key) => self.key = key.to_owned(),
            None => return Err(CodecError::new("the key of a map is not a string")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), CodecError> {
        self.value(v).map_err(|e| e.within(&self.key))
    }

    fn end(self) -> Result<(), CodecError> {
        self.close()
    }
}
