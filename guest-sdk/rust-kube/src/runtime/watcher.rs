//! What a controller watches.

use std::convert::Infallible;

use kube_core::Selector;

use crate::api::Api;

/// The error of a watch. There is none here: the host watches, tries again, and shows the
/// state of each watch.
pub type Error = Infallible;

/// Which objects are watched. The default is all of the [`Api`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Written as for kubectl.
    pub label_selector: Option<String>,
    /// Written as for kubectl.
    pub field_selector: Option<String>,
}

impl Config {
    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.to_owned());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels_from(self, selector: &Selector) -> Self {
        self.labels(&selector.to_string())
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.to_owned());
        self
    }

    /// Nothing: the host decides how it lists.
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self
    }

    /// Nothing: the host decides how it lists.
    #[must_use]
    pub fn streaming_lists(self) -> Self {
        self
    }

    /// Nothing: the host decides how it lists.
    #[must_use]
    pub fn page_size(self, _: u32) -> Self {
        self
    }

    /// Nothing: the host decides how it watches.
    #[must_use]
    pub fn timeout(self, _: u32) -> Self {
        self
    }

    /// The watch, as the SDK has it.
    pub(crate) fn watch<K>(&self, api: &Api<K>) -> wasmctl::Watch {
        let kind = &api.resource;
        let namespaces: Vec<&str> = api.namespace().into_iter().collect();
        wasmctl::Watch::new(&kind.group, &kind.version, &kind.kind)
            .namespaces(&namespaces)
            .labels(self.label_selector.as_deref().unwrap_or_default())
            .fields(self.field_selector.as_deref().unwrap_or_default())
    }
}
