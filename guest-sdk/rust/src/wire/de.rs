// SPDX-License-Identifier: Apache-2.0
use serde::de::{self, DeserializeSeed, Visitor};

use super::read::{len, read_bool, read_float, read_int, skip, str_bytes, type_of};
use super::{CodecError, Type, MAX_DEPTH};

/// Decodes the value at the start of `v`.
pub(crate) fn from_slice<'de, T: de::Deserialize<'de>>(v: &'de [u8]) -> Result<T, CodecError> {
    let mut d = Deserializer { b: v, pos: 0, depth: 0 };
    T::deserialize(&mut d)
}

/// The name of the newtype struct that is decoded as the bytes of its msgpack.
pub(crate) const RAW: &str = "$wasmctl::raw";

struct Deserializer<'de> {
    b: &'de [u8],
    pos: usize,
    depth: usize,
}

impl<'de> Deserializer<'de> {
    fn view(&self) -> &'de [u8] {
        self.b.get(self.pos..).unwrap_or(&[])
    }

    /// Advances past the next value.
    fn pass(&mut self) -> Result<(), CodecError> {
        self.pos = skip(self.b, self.pos).ok_or_else(CodecError::truncated)?;
        Ok(())
    }

    fn str(&mut self) -> Result<&'de str, CodecError> {
        let (bytes, next) = str_bytes(self.b, self.pos).ok_or_else(CodecError::truncated)?;
        self.pos = next;
        std::str::from_utf8(bytes).map_err(|_| CodecError::utf8())
    }

    fn int(&mut self) -> Result<i64, CodecError> {
        let i = read_int(self.view()).ok_or_else(CodecError::number)?;
        self.pass()?;
        Ok(i)
    }

    /// Enters the next map or array; `f` reads its `n` entries.
    fn inside<T>(&mut self, f: impl FnOnce(&mut Self, usize) -> Result<T, CodecError>) -> Result<T, CodecError> {
        let (n, first) = len(self.view()).ok_or_else(CodecError::truncated)?;
        if self.depth >= MAX_DEPTH {
            return Err(CodecError::too_deep());
        }
        self.pos += first;
        self.depth += 1;
        let result = f(self, n)?;
        self.depth -= 1;
        Ok(result)
    }

    fn any<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, CodecError> {
        match type_of(self.view()) {
            Type::Nil => {
                self.pass()?;
                visitor.visit_unit()
            }
            Type::Bool => {
                let b = read_bool(self.view()) == Some(true);
                self.pass()?;
                visitor.visit_bool(b)
            }
            Type::Int => visitor.visit_i64(self.int()?),
            Type::Float => {
                let f = read_float(self.view()).ok_or_else(CodecError::truncated)?;
                self.pass()?;
                visitor.visit_f64(f)
            }
            Type::String => visitor.visit_borrowed_str(self.str()?),
            Type::Array => self.inside(|d, n| visitor.visit_seq(Entries { d, left: n, n, key: "" })),
            Type::Map => self.inside(|d, n| visitor.visit_map(Entries { d, left: n, n, key: "" })),
            Type::Opaque => Err(CodecError::new("opaque JSON: decode it as an OpaqueJson")),
            Type::Absent if self.view().is_empty() => Err(CodecError::truncated()),
            Type::Absent => Err(CodecError::type_not_allowed()),
        }
    }
}

macro_rules! integers {
    ($($name:ident)*) => {$(
        /// Also accepts a float with an integral value.
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CodecError> {
            match type_of(self.view()) {
                Type::Float if read_int(self.view()).is_some() => visitor.visit_i64(self.int()?),
                _ => self.any(visitor),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut Deserializer<'de> {
    type Error = CodecError;

    integers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    integers!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CodecError> {
        self.any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CodecError> {
        if type_of(self.view()) == Type::Nil {
            self.pass()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, CodecError> {
        if name == RAW {
            let start = self.pos;
            self.pass()?;
            return visitor.visit_borrowed_bytes(&self.b[start..self.pos]);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CodecError> {
        self.pass()?;
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, CodecError> {
        match type_of(self.view()) {
            Type::String => visitor.visit_enum(Variant { d: self, unit: true }),
            Type::Map if len(self.view()).map(|(n, _)| n) == Some(1) => {
                self.inside(|d, _| visitor.visit_enum(Variant { d, unit: false }))
            }
            _ => Err(CodecError::new("an enum is a string, or a map with one key")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// The entries of the map or array that is being decoded.
struct Entries<'a, 'de> {
    d: &'a mut Deserializer<'de>,
    left: usize,
    n: usize,
    key: &'de str,
}

impl<'de> de::SeqAccess<'de> for Entries<'_, 'de> {
    type Error = CodecError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, CodecError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let i = self.n - self.left - 1;
        seed.deserialize(&mut *self.d).map(Some).map_err(|e| e.within(i))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(4096))
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_, 'de> {
    type Error = CodecError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, CodecError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if type_of(self.d.view()) != Type::String {
            return Err(CodecError::type_not_allowed());
        }
        self.key = self.d.str()?;
        seed.deserialize(de::value::BorrowedStrDeserializer::new(self.key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, CodecError> {
        let key = self.key;
        seed.deserialize(&mut *self.d).map_err(|e| e.within(key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(4096))
    }
}

/// A variant of an enum: its name, or a map from its name to its content.
struct Variant<'a, 'de> {
    d: &'a mut Deserializer<'de>,
    unit: bool,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = CodecError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), CodecError> {
        let name = self.d.str()?;
        let value: Result<_, CodecError> = seed.deserialize(de::value::BorrowedStrDeserializer::new(name));
        Ok((value?, self))
    }
}

impl<'de> Variant<'_, 'de> {
    fn content(self) -> Result<&'de [u8], CodecError> {
        if self.unit {
            return Err(CodecError::new("the variant has no content"));
        }
        let view = self.d.view();
        self.d.pass()?;
        Ok(view)
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = CodecError;

    fn unit_variant(self) -> Result<(), CodecError> {
        if !self.unit {
            self.d.pass()?;
        }
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, CodecError> {
        let depth = self.d.depth;
        seed.deserialize(&mut Deserializer { b: self.content()?, pos: 0, depth })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, CodecError> {
        let depth = self.d.depth;
        Deserializer { b: self.content()?, pos: 0, depth }.any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, CodecError> {
        let depth = self.d.depth;
        Deserializer { b: self.content()?, pos: 0, depth }.any(visitor)
    }
}
