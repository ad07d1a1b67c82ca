// SPDX-License-Identifier: Apache-2.0
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::meta::{ObjectKey, ObjectRef};
use crate::time::Time;
use crate::value::{Elements, Entries, Value};
use crate::wire::{self, CodecError, Type};

/// One Kubernetes object of any kind, read in place; see [`Value`] for paths.
///
/// The object of a run is a view of the bytes that the host wrote. Objects from the
/// client and the cache own their bytes. `set` and `remove` make a copy first if
/// necessary, and preserve all other fields.
#[derive(Clone, Default)]
pub struct Object<'a> {
    bytes: Cow<'a, [u8]>,
}

/// Defines methods of `Value` on the object itself.
macro_rules! as_value {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self, $($arg: $t),*) -> $out {
            self.value().$name($($arg),*)
        }
    )*};
}

impl<'a> Object<'a> {
    pub(crate) fn view(bytes: &'a [u8]) -> Self {
        Object { bytes: Cow::Borrowed(bytes) }
    }

    /// Encodes `v` and returns it as an object: the result of [`json!`](crate::json), a
    /// [`Builder`](crate::Builder) or any value that serde serializes.
    ///
    /// # Errors
    ///
    /// A value that cannot cross the sandbox boundary: bytes, integers outside of an i64,
    /// infinite floats, keys that are not strings, or more than 128 levels.
    pub fn new<T: Serialize + ?Sized>(v: &T) -> Result<Object<'static>, CodecError> {
        let mut bytes = Vec::new();
        wire::append(&mut bytes, v)?;
        wire::check(&bytes)?;
        Ok(Object { bytes: Cow::Owned(bytes) })
    }

    /// The object as a value.
    pub fn value(&self) -> Value<'_> {
        Value::of(&self.bytes)
    }

    /// A copy that stays valid after the run.
    pub fn to_owned(&self) -> Object<'static> {
        Object { bytes: Cow::Owned(self.value().raw().to_vec()) }
    }

    as_value! {
        /// The value at the path.
        at(path: &[&str]) -> Value<'_>;
        /// The type of the value at the path.
        type_of(path: &[&str]) -> Type;
        /// Whether the value at the path is present and not nil.
        exists(path: &[&str]) -> bool;
        /// The string at the path.
        str(path: &[&str]) -> &str;
        /// The integer at the path. Also accepts a float with an integral value.
        int(path: &[&str]) -> i64;
        /// The number at the path. Also accepts an integer.
        float(path: &[&str]) -> f64;
        /// The bool at the path.
        bool(path: &[&str]) -> bool;
        /// The time at the path.
        time(path: &[&str]) -> Option<Time>;
        /// The number of elements of the array, or of keys of the map, at the path.
        len(path: &[&str]) -> usize;
        /// Iterates over the map at the path.
        entries(path: &[&str]) -> Entries<'_>;
        /// Iterates over the array at the path.
        elements(path: &[&str]) -> Elements<'_>;
        /// The strings of the array at the path.
        strings(path: &[&str]) -> Vec<String>;
        /// The strings of the map at the path.
        string_map(path: &[&str]) -> BTreeMap<String, String>;
        /// The msgpack of the object; empty if it does not exist.
        raw() -> &[u8];
    }

    /// Decodes the value at the path with serde; `&[]` is the complete object. See
    /// [`Value::decode`].
    ///
    /// # Errors
    ///
    /// The part that does not fit the type, with its path.
    pub fn decode<'b, T: Deserialize<'b>>(&'b self, path: &[&str]) -> Result<T, CodecError> {
        self.value().decode(path)
    }

    /// Sets the value at the path. Creates missing maps on the path, and preserves all
    /// other fields, including unknown ones.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent, or a path into something other than a map. Then the
    /// object does not change.
    pub fn set<T: Serialize + ?Sized>(&mut self, path: &[&str], value: &T) -> Result<(), CodecError> {
        let mut val = Vec::new();
        wire::append(&mut val, value)?;
        let mut bytes = Vec::with_capacity(self.bytes.len() + val.len() + 64);
        wire::set(&mut bytes, self.value().raw(), path, &val)?;
        self.bytes = Cow::Owned(bytes);
        Ok(())
    }

    /// Removes the value at the path, if there is one.
    pub fn remove(&mut self, path: &[&str]) {
        if path.is_empty() || self.type_of(path) == Type::Absent {
            return;
        }
        let mut bytes = Vec::with_capacity(self.bytes.len());
        wire::remove(&mut bytes, &self.bytes, path);
        self.bytes = Cow::Owned(bytes);
    }

    /// A reference to the object.
    pub fn to_ref(&self) -> ObjectRef {
        self.key().to_ref(self.api_version(), self.kind())
    }

    /// The namespace and name of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace().to_owned(), name: self.name().to_owned() }
    }

    /// The group and version, for example `apps/v1` or `v1`.
    pub fn api_version(&self) -> &str {
        self.str(&["apiVersion"])
    }

    /// The kind, for example `Deployment`.
    pub fn kind(&self) -> &str {
        self.str(&["kind"])
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.str(&["metadata", "name"])
    }

    /// `metadata.namespace`. It is empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.str(&["metadata", "namespace"])
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.str(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.str(&["metadata", "resourceVersion"])
    }

    /// `metadata.generation`, which counts changes of the spec.
    pub fn generation(&self) -> i64 {
        self.int(&["metadata", "generation"])
    }

    /// One label, or "".
    pub fn label(&self, key: &str) -> &str {
        self.str(&["metadata", "labels", key])
    }

    /// All labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.string_map(&["metadata", "labels"])
    }

    /// One annotation, or "".
    pub fn annotation(&self, key: &str) -> &str {
        self.str(&["metadata", "annotations", key])
    }

    /// All annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.string_map(&["metadata", "annotations"])
    }

    /// The time at which the object was created.
    pub fn creation_timestamp(&self) -> Option<Time> {
        self.time(&["metadata", "creationTimestamp"])
    }

    /// The time at which the deletion of the object was requested.
    pub fn deletion_timestamp(&self) -> Option<Time> {
        self.time(&["metadata", "deletionTimestamp"])
    }

    /// Whether the deletion of the object was requested and the object still exists
    /// because of finalizers or dependents.
    pub fn is_deleting(&self) -> bool {
        self.exists(&["metadata", "deletionTimestamp"])
    }

    /// The finalizers of the object.
    pub fn finalizers(&self) -> Vec<String> {
        self.strings(&["metadata", "finalizers"])
    }
}

/// Shows the object's name and size, but not its content, which may be a Secret.
impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} bytes)", self.to_ref(), self.bytes.len())
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(s)
    }
}

/// An `Object` can be a field of a struct, for a part that stays encoded. It can be
/// decoded only from messages of the host.
impl<'de> Deserialize<'de> for Object<'static> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Object<'static>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message of the host")
            }

            fn visit_bytes<E: serde::de::Error>(self, b: &[u8]) -> Result<Self::Value, E> {
                Ok(Object { bytes: Cow::Owned(b.to_vec()) })
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<Self::Value, D::Error> {
                Err(D::Error::custom("an Object can be decoded only from messages of the host"))
            }
        }
        d.deserialize_newtype_struct(wire::RAW, Bytes)
    }
}
