// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use serde::ser::Serialize;

use crate::action::encode;
use crate::context::Context;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::object::Object;
use crate::value::Value;
use crate::wire::{self, CodecError, Message};

/// Converts an object, and appends the result.
type Convert = Box<dyn Fn(&Object<'_>, &str, &Context<'_>, &mut Vec<u8>) -> Result<(), Error>>;

/// A kind whose objects the module converts between versions; see
/// [`Manifest::conversions`](crate::Manifest).
pub struct Conversion {
    group: String,
    kind: String,
    versions: Vec<String>,
    convert: Convert,
}

impl Conversion {
    /// Makes the conversion of a kind of a group between versions, for example `v1` and
    /// `v2`.
    ///
    /// The function receives an object and the apiVersion to convert to, for example
    /// `example.com/v2`. It returns the complete object: an [`Object`] or any value that
    /// serde serializes. `apiVersion` and `kind` are added if they are absent. Of the
    /// metadata, only labels and annotations may differ. An error fails the read or write
    /// of the client, so a conversion should accept every object that its version allows.
    /// The function may read the settings, and nothing else.
    ///
    /// ```
    /// use wasmctl::{Context, Conversion, Error, Object};
    ///
    /// fn convert(obj: &Object, to: &str, _: &Context) -> Result<Object<'static>, Error> {
    ///     let mut out = obj.to_owned();
    ///     out.set(&["apiVersion"], to)?;
    ///     let (from, into) = if to.ends_with("/v2") { ("size", "replicas") } else { ("replicas", "size") };
    ///     out.remove(&["spec", from]);
    ///     out.set(&["spec", into], &obj.int(&["spec", from]))?;
    ///     Ok(out)
    /// }
    ///
    /// let conversions = vec![Conversion::new("example.com", "Web", &["v1", "v2"], convert)];
    /// ```
    pub fn new<F, T, E>(group: &str, kind: &str, versions: &[&str], f: F) -> Self
    where
        F: Fn(&Object<'_>, &str, &Context<'_>) -> Result<T, E> + 'static,
        T: Serialize,
        E: Into<Error>,
    {
        Conversion {
            group: group.to_owned(),
            kind: kind.to_owned(),
            versions: versions.iter().map(|v| (*v).to_owned()).collect(),
            convert: Box::new(move |obj, to, ctx, dst| {
                let converted = encode(&f(obj, to, ctx).map_err(Into::into)?)?;
                dst.extend_from_slice(&named(converted, to, obj.kind())?);
                Ok(())
            }),
        }
    }

    /// Writes the conversion in its form in a manifest.
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.text("group", &self.group);
        m.text("kind", &self.kind);
        m.strs("versions", &self.versions);
    }
}

/// The object with `apiVersion` and `kind`, which types of Rust often lack.
fn named(mut object: Vec<u8>, api_version: &str, kind: &str) -> Result<Vec<u8>, CodecError> {
    for (key, value) in [("apiVersion", api_version), ("kind", kind)] {
        if Value::of(&object).at(&[key]).raw().is_empty() {
            let (mut text, mut out) = (Vec::new(), Vec::new());
            wire::append_str(&mut text, value);
            wire::set(&mut out, &object, &[key], &text)?;
            object = out;
        }
    }
    Ok(object)
}

impl Manifest {
    /// Writes a Converted (abi/ABI.md, section 4) with the objects of a Conversion.
    pub(crate) fn convert(&self, ctx: &Context<'_>, dst: &mut Vec<u8>) -> Result<(), Error> {
        let to = ctx.input.message.str(&["to"]);
        let objects = ctx.input.message.at(&["objects"]);
        let mut m = Message::new(dst);
        let list = m.key("objects");
        wire::append_array(list, objects.len(&[]));
        let group = to.split_once('/').map_or("", |(group, _)| group);
        let mut n = 0;
        for obj in objects.elements(&[]) {
            n += 1;
            let obj = Object::view(obj.raw());
            if obj.api_version() == to {
                list.extend_from_slice(obj.raw());
                continue;
            }
            let found = self.conversions.iter().find(|c| c.kind == obj.kind() && c.group == group);
            let conversion = found.ok_or_else(|| Error::msg(format!("{}: no conversion to {to}", obj.to_ref())))?;
            (conversion.convert)(&obj, to, ctx, list).map_err(|e| e.context(obj.to_ref()))?;
        }
        if n != objects.len(&[]) {
            return Err(Error::msg("request[]: cannot be understood").permanent());
        }
        Ok(())
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conversion({}.{} {:?})", self.kind, self.group, self.versions)
    }
}
