// SPDX-License-Identifier: Apache-2.0
use std::fmt;

/// A value that cannot be encoded, or does not fit the type to which it is decoded.
///
/// It has the place within the value (`spec.containers.0.image`) and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError {
    path: String,
    what: String,
}

impl CodecError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        CodecError { path: String::new(), what: what.into() }
    }

    /// The error with a step added at the front of its path.
    pub(crate) fn within(mut self, step: impl fmt::Display) -> Self {
        let mut path = step.to_string();
        if !self.path.is_empty() {
            path.push('.');
            path.push_str(&self.path);
        }
        self.path = path;
        self
    }

    pub(crate) fn truncated() -> Self {
        Self::new("msgpack ends too early")
    }

    pub(crate) fn type_not_allowed() -> Self {
        Self::new("msgpack type is not allowed here")
    }

    pub(crate) fn number() -> Self {
        Self::new("number is not finite or not an int64")
    }

    pub(crate) fn utf8() -> Self {
        Self::new("string is not UTF-8")
    }

    pub(crate) fn too_deep() -> Self {
        Self::new("msgpack nests deeper than 128")
    }

    pub(crate) fn too_large() -> Self {
        Self::new("message is longer than 4194304 bytes")
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str(&self.path)?;
            f.write_str(": ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for CodecError {}

impl serde::ser::Error for CodecError {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Self::new(msg.to_string())
    }
}

impl serde::de::Error for CodecError {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Self::new(msg.to_string())
    }
}
