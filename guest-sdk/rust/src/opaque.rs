// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::wire;

/// The text of JSON that the API server stores without interpreting it, for example the
/// `data` of a `ControllerRevision`. The host reads and sends it unchanged.
///
/// Only a module whose [`Manifest::wants`](crate::Manifest::wants) contains
/// [`OpaqueJson::ABILITY`] gets such fields as opaque JSON; others get the decoded value.
/// It may be sent to a host that has this ability (see
/// [`Context::host_has`](crate::Context::host_has)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpaqueJson(
    /// The text, which must be valid JSON.
    pub String,
);

impl OpaqueJson {
    /// The name of the ability in `wants` and among those of the host.
    pub const ABILITY: &'static str = "opaque";
}

impl Serialize for OpaqueJson {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.0.len() + 6);
        wire::append_opaque(&mut bytes, &self.0);
        wire::serialize_raw(s, &bytes, &self.0)
    }
}

impl<'de> Deserialize<'de> for OpaqueJson {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = OpaqueJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("opaque JSON")
            }

            fn visit_borrowed_bytes<E: serde::de::Error>(self, b: &'de [u8]) -> Result<OpaqueJson, E> {
                let text = wire::read_opaque(b).ok_or_else(|| E::custom("the value is not opaque JSON"))?;
                Ok(OpaqueJson(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<OpaqueJson, D::Error> {
                Err(D::Error::custom("opaque JSON is only in messages of the host"))
            }
        }
        d.deserialize_newtype_struct(wire::RAW, Text)
    }
}

#[cfg(test)]
mod tests {
    use super::OpaqueJson;
    use crate::{json, Object, Type};

    const LETTERS: &str = r#"{"z":1.0, "a":2e0,"u":18446744073709551615,"s":"<&>\u00e9"}"#;

    fn revision(text: &str) -> Object<'static> {
        let mut o = Object::new(&json!({"apiVersion": "apps/v1", "kind": "ControllerRevision"})).unwrap();
        o.set(&["data"], &OpaqueJson(text.to_owned())).unwrap();
        o
    }

    #[test]
    fn no_byte_of_it_changes() {
        for n in [0, 300, 70_000] {
            let text = LETTERS.replacen("<", &"x".repeat(n), 1);
            let mut o = revision(&text);
            o.set(&["metadata", "labels", "a"], "b").unwrap();
            crate::wire::check(o.value().raw()).unwrap();
            assert_eq!(o.decode::<OpaqueJson>(&["data"]).unwrap().0, text);
            assert_eq!((o.value().at(&["data"]).as_opaque(), o.type_of(&["data"])), (Some(&*text), Type::Opaque));
        }
    }

    #[test]
    fn other_types_are_errors() {
        let o = revision(LETTERS);
        assert!(o.decode::<String>(&["data"]).is_err() && o.decode::<OpaqueJson>(&["kind"]).is_err());
        assert_eq!((o.str(&["data", "s"]), o.value().at(&["kind"]).as_opaque()), ("", None));
    }

    #[test]
    fn invalid_forms_are_refused() {
        for b in [&[0xc7u8][..], &[0xc7, 1], &[0xc7, 1, 1], &[0xc7, 0, 2], &[0xc8, 0, 1, 1], &[0xc9, 255, 255, 255, 255, 1]] {
            assert!(crate::wire::check(b).is_err(), "{b:?}");
        }
    }
}
