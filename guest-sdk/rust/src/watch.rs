// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use crate::context::Context;
use crate::error::Error;
use crate::input::Input;
use crate::manifest::Manifest;
use crate::meta::ObjectKey;
use crate::object::Object;
use crate::value::Value;
use crate::wire::Message;

/// Returns the objects that an event of a watched object concerns; see [`Watch::mapper`].
pub type Mapper = Box<dyn Fn(&WatchEvent<'_>, &Context<'_>) -> Result<Vec<ObjectKey>, Error>>;

/// Returns whether an event counts; see [`Watch::filter`].
pub type Filter = Box<dyn Fn(&WatchEvent<'_>, &Context<'_>) -> bool>;

/// A kind that a module reconciles, owns or watches.
///
/// ```
/// # use wasmctl::Watch;
/// let owns = Watch::new("apps", "v1", "Deployment").metadata_only();
/// let watches = Watch::new("", "v1", "Secret").map("annotation:example.com/for");
/// ```
#[derive(Default)]
pub struct Watch {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) namespaces: Vec<String>,
    pub(crate) label_selector: String,
    field_selector: String,
    predicates: Vec<String>,
    pub(crate) deletes: bool,
    pub(crate) map: String,
    pub(crate) mapper: Option<Mapper>,
    pub(crate) filter: Option<Filter>,
    pub(crate) metadata_only: bool,
    pub(crate) controller_only: bool,
    optional: bool,
}

/// The map of a watch with a mapper, and the predicate that calls the filter.
const BY_FUNC: &str = "func";

impl Watch {
    /// Makes a watch of the kind with that group and version. The group "" is the core
    /// group; the version "" is the one that the API server prefers.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Watch { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), ..Watch::default() }
    }

    /// Makes a watch of the kind of a type.
    pub fn of<K: crate::Resource>() -> Self {
        let (group, version) = K::API_VERSION.split_once('/').unwrap_or(("", K::API_VERSION));
        Watch::new(group, version, K::KIND)
    }

    /// Restricts the watch to objects in these namespaces.
    #[must_use]
    pub fn namespaces(mut self, namespaces: &[&str]) -> Self {
        self.namespaces = owned(namespaces);
        self
    }

    /// Restricts the watch to objects with these labels, in the syntax of kubectl.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = selector.to_owned();
        self
    }

    /// Restricts the watch to objects with these fields, in the syntax of kubectl.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = selector.to_owned();
        self
    }

    /// Sets the changes that cause a run: `generation`, `resourceVersion`, `labels`,
    /// `annotations`, `finalizers`, `deletion`, and `all(...)` and `any(...)` of these.
    /// One match in the list is enough. They cost less than a filter, for which the host
    /// must call the module.
    #[must_use]
    pub fn predicates(mut self, predicates: &[&str]) -> Self {
        self.predicates = owned(predicates);
        self
    }

    /// Makes the host run the reconciler once more, without an object, after the object
    /// is gone. It has an effect only in [`Manifest::for_`].
    #[must_use]
    pub fn deletes(mut self) -> Self {
        self.deletes = true;
        self
    }

    /// Selects the objects that an event concerns. `owner` selects the owners.
    /// `label:KEY` selects the object that the label names, in the same namespace.
    /// `annotation:KEY` selects the object that the annotation names, by its name or
    /// `namespace/name`. It has an effect only in [`Manifest::watches`].
    #[must_use]
    pub fn map(mut self, map: &str) -> Self {
        self.map = map.to_owned();
        self
    }

    /// Selects the objects that an event concerns by code, instead of `map`.
    ///
    /// The host calls it for each event. If a change moves an object from one owner to
    /// another, return both owners: compare `old` and `new`. Keys of objects that do not
    /// exist do no harm. After an error, the host calls it again later. The context
    /// offers the cache, the settings and the log. It has no object, and calls of its
    /// client return an error.
    #[must_use]
    pub fn mapper<F, E>(mut self, f: F) -> Self
    where
        F: Fn(&WatchEvent<'_>, &Context<'_>) -> Result<Vec<ObjectKey>, E> + 'static,
        E: Into<Error>,
    {
        self.mapper = Some(Box::new(move |event, ctx| f(event, ctx).map_err(Into::into)));
        self
    }

    /// Hides the events for which it returns false. The host calls it for events that the
    /// predicates accept. The cache stores the object in any case. The context is like
    /// that of a mapper.
    #[must_use]
    pub fn filter<F>(mut self, f: F) -> Self
    where
        F: Fn(&WatchEvent<'_>, &Context<'_>) -> bool + 'static,
    {
        self.filter = Some(Box::new(f));
        self
    }

    /// Restricts the objects to apiVersion, kind and metadata, which saves memory. It has
    /// no effect in [`Manifest::for_`].
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Skips owners that do not control the object. It has an effect only in
    /// [`Manifest::owns`], and with map `owner`.
    #[must_use]
    pub fn controller_only(mut self) -> Self {
        self.controller_only = true;
        self
    }

    /// Lets reconciling start before this watch has synced.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.clone();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// Writes the watch in its form in a manifest.
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.text("group", &self.group);
        m.str("version", &self.version);
        m.text("kind", &self.kind);
        m.strs("namespaces", &self.namespaces);
        m.str("labelSelector", &self.label_selector);
        m.str("fieldSelector", &self.field_selector);
        m.strs("predicates", &self.described_predicates());
        m.bool("deletes", self.deletes);
        m.str("map", if self.mapper.is_some() { BY_FUNC } else { &self.map });
        m.bool("metadataOnly", self.metadata_only);
        m.bool("controllerOnly", self.controller_only);
        m.bool("optional", self.optional);
    }

    /// The predicates, including the filter. An event must pass the filter and one of the
    /// others.
    fn described_predicates(&self) -> Vec<String> {
        if self.filter.is_none() || self.predicates.iter().any(|p| p.contains(BY_FUNC)) {
            return self.predicates.clone();
        }
        let (ttl, rest): (Vec<_>, Vec<_>) =
            self.predicates.iter().cloned().partition(|p| p.trim_start().starts_with("ttl="));
        let all =
            if rest.is_empty() { BY_FUNC.to_owned() } else { format!("all(any({}), {BY_FUNC})", rest.join(", ")) };
        ttl.into_iter().chain([all]).collect()
    }
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({} {})", self.api_version(), self.kind)
    }
}

/// The type of a change of a watched object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchEventType {
    /// The object existed when the watch started.
    Listed,
    /// The object was created or has changed.
    Updated,
    /// The object is gone.
    Deleted,
    /// A type that is newer than this SDK.
    Other(String),
}

impl WatchEventType {
    /// The name in the ABI.
    pub fn as_str(&self) -> &str {
        match self {
            WatchEventType::Listed => "Listed",
            WatchEventType::Updated => "Updated",
            WatchEventType::Deleted => "Deleted",
            WatchEventType::Other(word) => word,
        }
    }
}

/// One change of one watched object, as a mapper and a filter receive it.
#[derive(Clone, Debug)]
pub struct WatchEvent<'a> {
    /// The type of the change.
    pub type_: WatchEventType,
    /// The group of the watch.
    pub group: &'a str,
    /// The version of the watch.
    pub version: &'a str,
    /// The kind of the watch.
    pub kind: &'a str,
    /// The name of the object.
    pub key: ObjectKey,
    /// The object before the change; it does not exist if the host did not know the
    /// object before.
    pub old: Object<'a>,
    /// The object after the change; it does not exist if the object is gone.
    pub new: Object<'a>,
}

impl<'a> WatchEvent<'a> {
    /// The newest state: `new`, or `old` if the object is gone.
    pub fn object(&self) -> &Object<'a> {
        if self.new.exists(&[]) {
            &self.new
        } else {
            &self.old
        }
    }

    /// Decodes the event of an entry call.
    pub(crate) fn read(input: &Input<'a>) -> Self {
        let watch = Value::of(input.watch);
        WatchEvent {
            type_: match Value::of(input.event_type).str(&[]) {
                "Listed" => WatchEventType::Listed,
                "Updated" => WatchEventType::Updated,
                "Deleted" => WatchEventType::Deleted,
                word => WatchEventType::Other(word.to_owned()),
            },
            group: watch.str(&["group"]),
            version: watch.str(&["version"]),
            kind: watch.str(&["kind"]),
            key: ObjectKey::read(Value::of(input.key)),
            old: Object::view(input.old),
            new: Object::view(input.new),
        }
    }
}

impl Manifest {
    fn all_watches(&self) -> impl Iterator<Item = &Watch> {
        std::iter::once(&self.for_).chain(&self.owns).chain(&self.watches)
    }

    /// The mapper for events of the kind.
    pub(crate) fn mapper(&self, group: &str, kind: &str) -> Option<&Mapper> {
        self.watches.iter().filter(|w| w.is(group, kind)).find_map(|w| w.mapper.as_ref())
    }

    /// Calls the filters of the kind. If several watches match an event, one filter that
    /// returns true is enough. An event without a matching watch is accepted.
    pub(crate) fn keeps(&self, event: &WatchEvent<'_>, ctx: &Context<'_>) -> bool {
        let mut watches = self.all_watches().filter(|w| w.is(event.group, event.kind)).peekable();
        watches.peek().is_none() || watches.any(|w| w.filter.as_ref().map_or(true, |f| f(event, ctx)))
    }

    pub(crate) fn has_mapper(&self) -> bool {
        self.watches.iter().any(|w| w.mapper.is_some())
    }

    pub(crate) fn has_filter(&self) -> bool {
        self.all_watches().any(|w| w.filter.is_some())
    }
}
