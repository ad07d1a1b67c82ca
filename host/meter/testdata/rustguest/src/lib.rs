// SPDX-License-Identifier: Apache-2.0
//! A guest for benchmarks: it decodes and encodes a document in MessagePack.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;

enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Int(v as i64))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Str(v.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut a: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(v) = a.next_element()? {
            out.push(v);
        }
        Ok(Value::List(out))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut a: A) -> Result<Value, A::Error> {
        let mut out = BTreeMap::new();
        while let Some((k, v)) = a.next_entry()? {
            out.insert(k, v);
        }
        Ok(Value::Map(out))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ValueVisitor)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => s.serialize_unit(),
            Value::Bool(v) => s.serialize_bool(*v),
            Value::Int(v) => s.serialize_i64(*v),
            Value::Float(v) => s.serialize_f64(*v),
            Value::Str(v) => s.serialize_str(v),
            Value::List(v) => v.serialize(s),
            Value::Map(v) => {
                let mut m = s.serialize_map(Some(v.len()))?;
                for (k, v) in v {
                    m.serialize_entry(k, v)?;
                }
                m.end()
            }
        }
    }
}

fn document() -> Value {
    let text = |s: &str| Value::Str(s.to_string());
    let mut containers = Vec::new();
    let mut labels = BTreeMap::new();
    for i in 0..12 {
        let name = format!("container-{}", i);
        labels.insert(format!("app.kubernetes.io/{}", name), text(&name));
        let mut c = BTreeMap::new();
        c.insert("image".to_string(), text(&format!("registry/{}:v1.2.3", name)));
        c.insert("name".to_string(), text(&name));
        c.insert("replicas".to_string(), Value::Int(i));
        c.insert("ratio".to_string(), Value::Float(i as f64 / 3.0));
        c.insert("ready".to_string(), Value::Bool(i % 2 == 0));
        let mut env = Vec::new();
        for j in 0..4 {
            let mut e = BTreeMap::new();
            e.insert("name".to_string(), text(&format!("VARIABLE_{}", j)));
            e.insert("value".to_string(), text(&name));
            env.push(Value::Map(e));
        }
        c.insert("env".to_string(), Value::List(env));
        containers.push(Value::Map(c));
    }
    let mut root = BTreeMap::new();
    root.insert("labels".to_string(), Value::Map(labels));
    root.insert("containers".to_string(), Value::List(containers));
    Value::Map(root)
}

/// Decodes and encodes the document n times.
#[no_mangle]
pub extern "C" fn msgpack(n: i32) -> i64 {
    let mut bytes = rmp_serde::to_vec(&document()).unwrap();
    let mut sum = 0;
    for _ in 0..n {
        let v: Value = rmp_serde::from_slice(&bytes).unwrap();
        bytes = rmp_serde::to_vec(&v).unwrap();
        sum += bytes.len() as i64;
    }
    sum
}
