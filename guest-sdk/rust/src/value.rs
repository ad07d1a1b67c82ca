// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use serde::de::Deserialize;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::time::Time;
use crate::wire::{self, CodecError, Type};

/// A view of one value in a message. Each method decodes only the value that it returns.
///
/// Each method takes a path of map keys that starts at the value; `&[]` is the value
/// itself. A value that is absent, nil, or of another type reads as the zero value. The
/// `as_` methods distinguish these cases.
///
/// ```
/// # let pod = wasmctl::Object::new(&wasmctl::json!({"spec": {"replicas": 3}})).unwrap();
/// assert_eq!(pod.int(&["spec", "replicas"]), 3);
/// assert_eq!(pod.str(&["spec", "serviceName"]), "");
/// assert_eq!(pod.at(&["spec", "serviceName"]).as_str(), None);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Value<'a> {
    /// Starts with the value; other bytes may follow it.
    pub(crate) view: &'a [u8],
}

impl<'a> Value<'a> {
    pub(crate) fn of(view: &'a [u8]) -> Self {
        Value { view }
    }

    /// The value at the path.
    pub fn at(&self, path: &[&str]) -> Value<'a> {
        Value::of(wire::at(self.view, path))
    }

    /// The type of the value at the path.
    pub fn type_of(&self, path: &[&str]) -> Type {
        wire::type_of(wire::at(self.view, path))
    }

    /// Whether the value at the path is present and not nil.
    pub fn exists(&self, path: &[&str]) -> bool {
        !matches!(self.type_of(path), Type::Absent | Type::Nil)
    }

    /// The string at the path.
    pub fn str(&self, path: &[&str]) -> &'a str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// The integer at the path. Also accepts a float with an integral value.
    pub fn int(&self, path: &[&str]) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// The number at the path. Also accepts an integer.
    pub fn float(&self, path: &[&str]) -> f64 {
        self.at(path).as_f64().unwrap_or_default()
    }

    /// The bool at the path.
    pub fn bool(&self, path: &[&str]) -> bool {
        self.at(path).as_bool().unwrap_or_default()
    }

    /// The time at the path, which Kubernetes encodes as a string in RFC 3339.
    pub fn time(&self, path: &[&str]) -> Option<Time> {
        Time::parse(self.at(path).as_str()?)
    }

    /// This value, if it is a string.
    pub fn as_str(&self) -> Option<&'a str> {
        wire::read_str(self.view)
    }

    /// This value, if it is an integer, or a float with an integral value.
    pub fn as_i64(&self) -> Option<i64> {
        wire::read_int(self.view)
    }

    /// This value, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        wire::read_float(self.view)
    }

    /// This value, if it is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        wire::read_bool(self.view)
    }

    /// The text of this value, if it is opaque JSON; see
    /// [`OpaqueJson`](crate::OpaqueJson).
    pub fn as_opaque(&self) -> Option<&'a str> {
        wire::read_opaque(self.view)
    }

    /// The number of elements of the array, or of keys of the map, at the path.
    pub fn len(&self, path: &[&str]) -> usize {
        wire::len(wire::at(self.view, path)).map_or(0, |(n, _)| n)
    }

    /// Iterates over the map at the path: `for (key, value) in obj.entries(&["data"])`.
    pub fn entries(&self, path: &[&str]) -> Entries<'a> {
        let at = wire::at(self.view, path);
        Entries(wire::walk(if wire::type_of(at) == Type::Map { at } else { &[] }))
    }

    /// Iterates over the array at the path: `for c in obj.elements(&["spec",
    /// "containers"])`.
    pub fn elements(&self, path: &[&str]) -> Elements<'a> {
        let at = wire::at(self.view, path);
        Elements(wire::walk(if wire::type_of(at) == Type::Array { at } else { &[] }))
    }

    /// The strings of the array at the path. Elements of other types are skipped.
    pub fn strings(&self, path: &[&str]) -> Vec<String> {
        self.elements(path).filter_map(|e| e.as_str().map(str::to_owned)).collect()
    }

    /// The map at the path. Entries whose value is not a string are skipped.
    pub fn string_map(&self, path: &[&str]) -> BTreeMap<String, String> {
        self.entries(path).filter_map(|(k, v)| Some((k.to_owned(), v.as_str()?.to_owned()))).collect()
    }

    /// Decodes the value at the path with serde.
    ///
    /// It costs a hundred times as much as reading a field: decode only the part that you
    /// need. `Option<T>` reads an absent value as `None`.
    ///
    /// # Errors
    ///
    /// The part that does not fit the type, with its path. An absent value is an error,
    /// except for types that accept nil.
    pub fn decode<T: Deserialize<'a>>(&self, path: &[&str]) -> Result<T, CodecError> {
        let view = wire::at(self.view, path);
        let view: &'a [u8] = if view.is_empty() { &[0xc0] } else { view };
        wire::from_slice(view).map_err(|e| path.iter().rev().fold(e, CodecError::within))
    }

    /// The msgpack of the value; empty if it is absent.
    pub fn raw(&self) -> &'a [u8] {
        wire::trim(self.view)
    }
}

/// The entries of a map, as key and value.
#[derive(Clone, Debug)]
pub struct Entries<'a>(wire::Walk<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, view) = self.0.next()?;
        Some((std::str::from_utf8(key).unwrap_or_default(), Value::of(view)))
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a>(wire::Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(_, view)| Value::of(view))
    }
}

/// Values are equal if their bytes are equal. Absent values are equal.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        wire::serialize_raw(s, self.raw(), &Walked(*self))
    }
}

/// Serializes a value to formats other than that of the host.
struct Walked<'a>(Value<'a>);

impl Serialize for Walked<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let v = self.0;
        match v.type_of(&[]) {
            Type::Absent | Type::Nil => s.serialize_unit(),
            Type::Bool => s.serialize_bool(v.bool(&[])),
            Type::Int => s.serialize_i64(v.int(&[])),
            Type::Float => s.serialize_f64(v.float(&[])),
            Type::String => s.serialize_str(v.str(&[])),
            Type::Opaque => s.serialize_str(v.as_opaque().unwrap_or_default()),
            Type::Array => {
                let mut seq = s.serialize_seq(Some(v.len(&[])))?;
                for e in v.elements(&[]) {
                    seq.serialize_element(&Walked(e))?;
                }
                seq.end()
            }
            Type::Map => {
                let mut map = s.serialize_map(Some(v.len(&[])))?;
                for (k, e) in v.entries(&[]) {
                    map.serialize_entry(k, &Walked(e))?;
                }
                map.end()
            }
        }
    }
}
