// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use crate::object::Object;
use crate::value::Value;
use crate::wire::Type;

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    List(Vec<Json>),
    Map(Map),
}

pub(super) type Map = BTreeMap<String, Json>;

impl Json {
    pub(super) fn read(v: Value<'_>) -> Self {
        match v.type_of(&[]) {
            Type::Absent | Type::Nil => Json::Null,
            Type::Bool => Json::Bool(v.bool(&[])),
            Type::Int => Json::Int(v.int(&[])),
            Type::Float => Json::Float(v.float(&[])),
            Type::String => Json::Str(v.str(&[]).to_owned()),
            Type::Opaque => Json::Str(v.as_opaque().unwrap_or_default().to_owned()),
            Type::Array => Json::List(v.elements(&[]).map(Json::read).collect()),
            Type::Map => Json::Map(v.entries(&[]).map(|(k, v)| (k.to_owned(), Json::read(v))).collect()),
        }
    }

    pub(super) fn as_map(&self) -> Option<&Map> {
        match self {
            Json::Map(m) => Some(m),
            _ => None,
        }
    }

    pub(super) fn as_list(&self) -> &[Json] {
        match self {
            Json::List(l) => l,
            _ => &[],
        }
    }

    /// The value at the path; `Null` if there is none.
    pub(super) fn at(&self, path: &[&str]) -> &Json {
        path.iter().fold(self, |v, key| v.as_map().and_then(|m| m.get(*key)).unwrap_or(&Json::Null))
    }

    /// The string at the path, or "".
    pub(super) fn str(&self, path: &[&str]) -> &str {
        match self.at(path) {
            Json::Str(s) => s,
            _ => "",
        }
    }

    pub(super) fn bool(&self, path: &[&str]) -> bool {
        *self.at(path) == Json::Bool(true)
    }

    /// This value as a map. It becomes a map if it is not one.
    pub(super) fn map_mut(&mut self) -> &mut Map {
        if self.as_map().is_none() {
            *self = Json::Map(Map::new());
        }
        match self {
            Json::Map(m) => m,
            _ => unreachable!("it was made a map"),
        }
    }

    /// The value under a key of this map. A missing value is added.
    pub(super) fn entry(&mut self, key: &str) -> &mut Json {
        self.map_mut().entry(key.to_owned()).or_insert(Json::Null)
    }

    /// The map `metadata`. A missing map is added.
    pub(super) fn metadata(&mut self) -> &mut Map {
        self.entry("metadata").map_mut()
    }

    pub(super) fn to_object(&self) -> Object<'static> {
        Object::new(self).unwrap_or_else(|e| panic!("testing: object {self:?}: {e}"))
    }
}

/// A map of the entries.
pub(super) fn map<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Map(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

impl From<&str> for Json {
    fn from(s: &str) -> Self {
        Json::Str(s.to_owned())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => s.serialize_unit(),
            Json::Bool(b) => s.serialize_bool(*b),
            Json::Int(i) => s.serialize_i64(*i),
            Json::Float(f) => s.serialize_f64(*f),
            Json::Str(t) => s.serialize_str(t),
            Json::List(l) => l.serialize(s),
            Json::Map(m) => m.serialize(s),
        }
    }
}
