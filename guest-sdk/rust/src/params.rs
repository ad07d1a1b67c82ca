use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::wire::{append_int, Message};

/// How [`Client::get_with`](crate::Client::get_with) reads. The default is the newest
/// state.
#[derive(Clone, Debug, Default)]
pub struct GetParams {
    /// `status` or `scale`; empty is the object.
    pub subresource: String,
    /// `0` takes what the API server has in its cache.
    pub resource_version: String,
}

impl GetParams {
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.str("subresource", &self.subresource);
        m.str("resourceVersion", &self.resource_version);
    }
}

/// What a list has. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct ListParams {
    /// Written as for kubectl.
    pub label_selector: String,
    /// Written as for kubectl. For the cache it may name any field that is a text, a
    /// number or a bool.
    pub field_selector: String,
    /// The uid of an owner of the objects. Only for the cache, which finds them without
    /// a look at the others.
    pub owner: String,
    /// How many objects a page has.
    pub limit: i64,
    /// Asks for the next page: [`List::continue_token`](crate::List::continue_token).
    pub continue_token: String,
    /// That of the Kubernetes API. The cache does not read it.
    pub resource_version: String,
    /// That of the Kubernetes API. The cache does not read it.
    pub resource_version_match: String,
}

impl ListParams {
    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = selector.to_owned();
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = selector.to_owned();
        self
    }

    /// Only objects that the object of this uid owns.
    #[must_use]
    pub fn owned_by(mut self, uid: &str) -> Self {
        self.owner = uid.to_owned();
        self
    }

    /// So many objects in a page.
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

/// Conditions on an object that is written or deleted. If one is not met, the answer is a
/// conflict. Empty fields are not checked.
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

/// How an object is written.
#[derive(Clone, Debug, Default)]
pub struct PatchParams {
    /// `status` or `scale`; empty is the object.
    pub subresource: String,
    /// Makes the API server check the write without storing it.
    pub dry_run: bool,
    /// If empty, `wasmctl/` and the controller's name.
    pub field_manager: String,
    /// `Ignore`, `Warn` (the API server's default) or `Strict`.
    pub field_validation: String,
    /// What must be true. Create reads none.
    pub preconditions: Preconditions,
    /// Takes over fields that another manager owns. A controller usually wants that for
    /// objects of its own. Without it such a field is a conflict. Only apply reads it.
    pub force: bool,
}

/// How an object is created or replaced.
pub type PostParams = PatchParams;

impl PatchParams {
    /// As that field manager.
    pub fn apply(manager: &str) -> Self {
        PatchParams { field_manager: manager.to_owned(), ..PatchParams::default() }
    }

    /// Takes over fields of other managers; see the field of this name.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Does not store anything.
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

/// How an object is deleted.
#[derive(Clone, Debug, Default)]
pub struct DeleteParams {
    /// Makes the API server check the request without running it.
    pub dry_run: bool,
    /// `Background`, `Foreground` or `Orphan`; empty is the kind's own.
    pub propagation_policy: String,
    /// `None` is the kind's own.
    pub grace_period_seconds: Option<i64>,
    /// What must be true.
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
    /// Applies fields by server-side apply. Only [`Api`](crate::Api) supports it, since a
    /// [`Client`](crate::Client) has `apply`.
    Apply(T),
    /// Sets the fields that are here and removes those that are nil (RFC 7386).
    /// Arrays are replaced as a whole.
    Merge(T),
    /// As `Merge`, with the arrays of built-in kinds merged by their keys. Custom
    /// resources do not have it.
    Strategic(T),
    /// Applies the operations in order, all or none (RFC 6902).
    Json(Vec<PatchOp>),
}

impl<T: Serialize> Patch<T> {
    /// Its name in a request; "" of `Apply`.
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

    /// Puts a value there, in front of what is there in an array.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn add<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("add", path).with(value)
    }

    /// Puts a value there in the place of the one that is there.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn replace<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("replace", path).with(value)
    }

    /// Fails the patch if another value is there.
    ///
    /// # Errors
    ///
    /// A value that cannot be sent.
    pub fn test<T: Serialize + ?Sized>(path: &str, value: &T) -> Result<Self, crate::CodecError> {
        Self::new("test", path).with(value)
    }

    /// Takes out what is there.
    pub fn remove(path: &str) -> Self {
        Self::new("remove", path)
    }

    /// Takes out what is at `from` and puts it at `path`.
    pub fn rename(from: &str, path: &str) -> Self {
        PatchOp { from: Some(from.to_owned()), ..Self::new("move", path) }
    }

    /// Puts at `path` what is at `from` too.
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
