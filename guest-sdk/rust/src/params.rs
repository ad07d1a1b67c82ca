// SPDX-License-Identifier: Apache-2.0
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::wire::{append_int, Message};

/// The parameters of [`Client::get_with`](crate::Client::get_with). The default reads the
/// newest state.
#[derive(Clone, Debug, Default)]
pub struct GetParams {
    /// `status` or `scale`, or empty for the object itself.
    pub subresource: String,
    /// `0` allows an answer from the cache of the API server.
    pub resource_version: String,
}

impl GetParams {
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.str("subresource", &self.subresource);
        m.str("resourceVersion", &self.resource_version);
    }
}

/// The parameters of a list. The default lists everything.
#[derive(Clone, Debug, Default)]
pub struct ListParams {
    /// In the syntax of kubectl.
    pub label_selector: String,
    /// In the syntax of kubectl. For the cache it may name any field that is a string, a
    /// number or a bool.
    pub field_selector: String,
    /// The UID of an owner of the objects. Only for the cache, which finds them without a
    /// scan of the others.
    pub owner: String,
    /// The number of objects in a page.
    pub limit: i64,
    /// Asks for the next page: [`List::continue_token`](crate::List::continue_token).
    pub continue_token: String,
    /// As in the Kubernetes API. The cache ignores it.
    pub resource_version: String,
    /// As in the Kubernetes API. The cache ignores it.
    pub resource_version_match: String,
}

impl ListParams {
    /// Selects objects by labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = selector.to_owned();
        self
    }

    /// Selects objects by fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = selector.to_owned();
        self
    }

    /// Selects objects that the object with this UID owns.
    #[must_use]
    pub fn owned_by(mut self, uid: &str) -> Self {
        self.owner = uid.to_owned();
        self
    }

    /// Sets the number of objects in a page.
    #[must_use]
    pub fn limit(mut self, n: i64) -> Self {
        self.limit = n;
        self
    }

    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.str("labelSelector", &self.label_selector);
        m.str("fieldSelector", &self.field_selector);
        m.str("owner", &self.owner);
        m.int("limit", self.limit);
        m.str("continue", &self.continue_token);
        m.str("resourceVersion", &self.resource_version);
        m.str("resourceVersionMatch", &self.resource_version_match);
    }
}

/// Conditions for a write or a deletion. If one is not met, the answer is a conflict.
/// Empty fields are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
}

impl Preconditions {
    fn write(&self, m: &mut Message<'_>) {
        if *self == Preconditions::default() {
            return;
        }
        m.map("preconditions", |p| {
            p.str("uid", &self.uid);
            p.str("resourceVersion", &self.resource_version);
        });
    }
}

/// The parameters of a write.
#[derive(Clone, Debug, Default)]
pub struct PatchParams {
    /// `status` or `scale`, or empty for the object itself.
    pub subresource: String,
    /// Makes the API server check the write without storing the result.
    pub dry_run: bool,
    /// The field manager. If empty, it is `wasmctl/` and the name of the controller.
    pub field_manager: String,
    /// `Ignore`, `Warn` (the API server's default) or `Strict`.
    pub field_validation: String,
    /// Conditions that must be met. Create does not use them.
    pub preconditions: Preconditions,
    /// Takes over fields that another manager owns. A controller usually wants that for
    /// objects of its own. Without it, a field of another manager is a conflict. Only
    /// apply uses it.
    pub force: bool,
}

/// The parameters of create and replace.
pub type PostParams = PatchParams;

impl PatchParams {
    /// Sets the field manager.
    pub fn apply(manager: &str) -> Self {
        PatchParams { field_manager: manager.to_owned(), ..PatchParams::default() }
    }

    /// Takes over fields of other managers; see the field `force`.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Makes the API server check the write without storing the result.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.str("subresource", &self.subresource);
        m.bool("dryRun", self.dry_run);
        m.str("fieldManager", &self.field_manager);
        m.str("fieldValidation", &self.field_validation);
        self.preconditions.write(m);
    }

    pub(crate) fn of_subresource(&self, name: &str) -> Self {
        PatchParams { subresource: name.to_owned(), ..self.clone() }
    }
}

/// The parameters of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteParams {
    /// Makes the API server check the request without deleting the object.
    pub dry_run: bool,
    /// `Background`, `Foreground` or `Orphan`; empty is the default of the kind.
    pub propagation_policy: String,
    /// The grace period; `None` is the default of the kind.
    pub grace_period_seconds: Option<i64>,
    /// Conditions that must be met.
    pub preconditions: Preconditions,
}

impl DeleteParams {
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.bool("dryRun", self.dry_run);
        m.str("propagationPolicy", &self.propagation_policy);
        if let Some(s) = self.grace_period_seconds {
            append_int(m.key("gracePeriodSeconds"), s);
        }
        self.preconditions.write(m);
    }
}

/// A change of an object.
#[derive(Clone, Debug)]
pub enum Patch<T> {
    /// Applies fields by server-side apply. Only [`Api`](crate::Api) supports it; a
    /// [`Client`](crate::Client) has `apply` instead.
    Apply(T),
    /// Sets the fields of the value and removes those that are nil in it (RFC 7386).
    /// Arrays are replaced as a whole.
    Merge(T),
    /// Like `Merge`, but merges the arrays of built-in kinds by their keys. Custom
    /// resources do not support it.
    Strategic(T),
    /// Applies all operations in order, or none (RFC 6902).
    Json(Vec<PatchOp>),
}

impl<T: Serialize> Patch<T> {
    /// The name in a request; "" for `Apply`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Patch::Apply(_) => "",
            Patch::Merge(_) => "merge",
            Patch::Strategic(_) => "strategic",
            Patch::Json(_) => "json",
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Patch::Apply(v) | Patch::Merge(v) | Patch::Strategic(v) => v.serialize(s),
            Patch::Json(ops) => ops.serialize(s),
        }
    }
}

/// One operation of a JSON patch. Paths are JSON pointers: `/metadata/labels/a`.
#[derive(Clone, Debug)]
pub struct PatchOp {
    op: &'static str,
    path: String,
    from: Option<String>,
    value: Option<crate::Object<'static>>,
}

impl PatchOp {
    fn new(op: &'static str, path: &str) -> Self {
        PatchOp { op, path: path.to_owned(), from: None, value: None }
    }

    fn with<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, crate::CodecError> {
        self.value = Some(crate::Object::new(value)?);
        Ok(self)
    }

    /// Adds a value; in an array, before the element at the path.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn add<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("add", path).with(value)
    }

    /// Replaces the value at the path.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn replace<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("replace", path).with(value)
    }

    /// Fails the patch if the value at the path is different.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn test<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("test", path).with(value)
    }

    /// Removes the value at the path.
    pub fn remove(path: &str) -> Self {
        Self::new("remove", path)
    }

    /// Moves the value from `from` to `path`.
    pub fn rename(from: &str, path: &str) -> Self {
        PatchOp { from: Some(from.to_owned()), ..Self::new("move", path) }
    }

    /// Copies the value at `from` to `path`.
    pub fn copy(from: &str, path: &str) -> Self {
        PatchOp { from: Some(from.to_owned()), ..Self::new("copy", path) }
    }
}

impl Serialize for PatchOp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let n = 2 + usize::from(self.from.is_some()) + usize::from(self.value.is_some());
        let mut m = s.serialize_struct("PatchOp", n)?;
        m.serialize_field("op", self.op)?;
        m.serialize_field("path", &self.path)?;
        if let Some(from) = &self.from {
            m.serialize_field("from", from)?;
        }
        if let Some(value) = &self.value {
            m.serialize_field("value", value)?;
        }
        m.end()
    }
}
