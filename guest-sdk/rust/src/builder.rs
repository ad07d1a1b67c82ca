// SPDX-License-Identifier: Apache-2.0
use serde::ser::{Serialize, Serializer};

use crate::meta::ObjectRef;
use crate::object::Object;
use crate::value::Value;
use crate::wire::{self, CodecError, MAX_DEPTH};

/// Writes a value to send, an object for example, directly into its message.
///
/// ```
/// # use wasmctl::{Builder, ObjectRef};
/// # let at = ObjectRef::new("v1", "ConfigMap", "a").within("default");
/// Builder::object(&at)
///     .map("labels").set("app", "web").end()
///     .end() // of metadata
///     .map("data").set("text", "hello");
/// ```
///
/// `set` writes an entry of the open map, `add` an element of the open list. `map`,
/// `list` and `add_map` open another container, and `end` closes it. Containers that are
/// open at the end are closed automatically. A key must not occur twice; the host refuses
/// an object that repeats a key. The builder remembers the first mistake, and the call
/// that sends the builder returns it. [`json!`](crate::json) writes the same in one
/// expression.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    open: Vec<Container>,
    error: Option<CodecError>,
}

/// A map or a list that is being written.
#[derive(Clone, Debug)]
struct Container {
    /// Offset of its header, which is three bytes long.
    start: usize,
    n: u16,
    list: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Starts a map.
    pub fn new() -> Self {
        Self::start(false)
    }

    /// Starts an object: apiVersion, kind and metadata with its name and namespace.
    /// `metadata` stays open for labels, annotations and owners; `end` closes it.
    pub fn object(at: &ObjectRef) -> Self {
        let b = Self::new()
            .set("apiVersion", at.api_version.as_str())
            .set("kind", at.kind.as_str())
            .map("metadata")
            .set("name", at.name.as_str());
        if at.namespace.is_empty() {
            return b;
        }
        b.set("namespace", at.namespace.as_str())
    }

    #[doc(hidden)]
    pub fn start(list: bool) -> Self {
        let mut b = Builder { bytes: Vec::with_capacity(512), open: Vec::with_capacity(8), error: None };
        b.begin(list);
        b
    }

    /// Opens a map or a list as the next value.
    #[doc(hidden)]
    pub fn begin(&mut self, list: bool) {
        if self.open.len() >= MAX_DEPTH {
            self.fail(CodecError::too_deep());
        }
        self.open.push(Container { start: self.bytes.len(), n: 0, list });
        self.bytes.extend_from_slice(&[if list { 0xdc } else { 0xde }, 0, 0]);
    }

    /// Closes the innermost open container.
    #[doc(hidden)]
    pub fn close(&mut self) {
        if self.open.len() < 2 {
            self.fail(CodecError::new("end without a map or a list"));
            return;
        }
        self.open.pop();
    }

    /// Counts an entry of the open map, and writes its key.
    #[doc(hidden)]
    pub fn key(&mut self, key: &str) {
        self.count(false);
        wire::append_str(&mut self.bytes, key);
    }

    /// Counts an element of the open list.
    #[doc(hidden)]
    pub fn element(&mut self) {
        self.count(true);
    }

    /// Writes the value of an entry or an element.
    #[doc(hidden)]
    pub fn value<T: Serialize + ?Sized>(&mut self, v: &T) {
        if let Err(e) = wire::append(&mut self.bytes, v) {
            self.fail(e);
        }
    }

    fn count(&mut self, list: bool) {
        let top = match self.open.last_mut() {
            Some(top) => top,
            None => return,
        };
        let mistake = match (top.list, list) {
            (true, false) => "a list has no keys; use add",
            (false, true) => "an entry of a map needs a key; use set",
            _ if top.n == u16::MAX => "more than 65535 entries",
            _ => "",
        };
        top.n = top.n.saturating_add(1);
        let (at, n) = (top.start + 1, top.n.to_be_bytes());
        self.bytes[at..at + 2].copy_from_slice(&n);
        if !mistake.is_empty() {
            self.fail(CodecError::new(mistake));
        }
    }

    /// Records the first mistake.
    fn fail(&mut self, e: CodecError) {
        self.error.get_or_insert(e);
    }

    /// Writes an entry: anything that serde serializes.
    #[must_use]
    pub fn set<T: Serialize>(mut self, key: &str, v: T) -> Self {
        self.key(key);
        self.value(&v);
        self
    }

    /// Opens a map.
    #[must_use]
    pub fn map(mut self, key: &str) -> Self {
        self.key(key);
        self.begin(false);
        self
    }

    /// Opens a list.
    #[must_use]
    pub fn list(mut self, key: &str) -> Self {
        self.key(key);
        self.begin(true);
        self
    }

    /// Writes an element of a list: anything that serde serializes.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // it is the natural counterpart of set
    pub fn add<T: Serialize>(mut self, v: T) -> Self {
        self.element();
        self.value(&v);
        self
    }

    /// Opens a map in a list.
    #[must_use]
    pub fn add_map(mut self) -> Self {
        self.element();
        self.begin(false);
        self
    }

    /// Closes the innermost open container.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.close();
        self
    }

    /// Writes `owner` into metadata as the controller of the object; see
    /// [`Object::controller_ref`]. The host does this itself for the children of a
    /// result.
    #[must_use]
    pub fn controller(self, owner: &Object<'_>) -> Self {
        self.set("ownerReferences", [owner.controller_ref()])
    }

    /// The first mistake.
    pub fn error(&self) -> Option<&CodecError> {
        self.error.as_ref()
    }
}

impl Serialize for Builder {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Some(e) = &self.error {
            return Err(serde::ser::Error::custom(e));
        }
        Value::of(&self.bytes).serialize(s)
    }
}

/// Writes a map or a list in the syntax of JSON, into a [`Builder`].
///
/// Keys are string literals or expressions in parentheses; values are nested maps
/// and lists, `null`, or any expression that serde serializes.
///
/// ```
/// # let (name, labels) = ("web", std::collections::BTreeMap::from([("app", "web")]));
/// let child = wasmctl::json!({
///     "apiVersion": "v1",
///     "kind": "ConfigMap",
///     "metadata": {"name": name, "labels": labels, "annotations": {(format!("{name}/x")): "y"}},
///     "data": {"list": "[1, 2]"},
/// });
/// # assert_eq!(wasmctl::Object::new(&child).unwrap().annotation("web/x"), "y");
/// ```
#[macro_export]
macro_rules! json {
    ({ $($body:tt)* }) => {{
        #[allow(unused_mut)]
        let mut builder = $crate::Builder::start(false);
        $crate::json!(@map builder $($body)*);
        builder
    }};
    ([ $($body:tt)* ]) => {{
        #[allow(unused_mut)]
        let mut builder = $crate::Builder::start(true);
        $crate::json!(@list builder $($body)*);
        builder
    }};

    (@map $b:ident) => {};
    (@map $b:ident ($key:expr) : $($rest:tt)*) => {
        $b.key(::core::convert::AsRef::<str>::as_ref(&$key));
        $crate::json!(@value map $b $($rest)*);
    };
    (@map $b:ident $key:literal : $($rest:tt)*) => {
        $b.key($key);
        $crate::json!(@value map $b $($rest)*);
    };

    (@list $b:ident) => {};
    (@list $b:ident $($rest:tt)*) => {
        $b.element();
        $crate::json!(@value list $b $($rest)*);
    };

    (@value $in:ident $b:ident { $($body:tt)* } $(, $($rest:tt)*)?) => {
        $b.begin(false);
        $crate::json!(@map $b $($body)*);
        $b.close();
        $crate::json!(@$in $b $($($rest)*)?);
    };
    (@value $in:ident $b:ident [ $($body:tt)* ] $(, $($rest:tt)*)?) => {
        $b.begin(true);
        $crate::json!(@list $b $($body)*);
        $b.close();
        $crate::json!(@$in $b $($($rest)*)?);
    };
    (@value $in:ident $b:ident null $(, $($rest:tt)*)?) => {
        $b.value(&());
        $crate::json!(@$in $b $($($rest)*)?);
    };
    (@value $in:ident $b:ident $value:expr $(, $($rest:tt)*)?) => {
        $b.value(&$value);
        $crate::json!(@$in $b $($($rest)*)?);
    };
}
