// SPDX-License-Identifier: Apache-2.0
//! The configuration of a controller's watches.

use std::convert::Infallible;

use kube_core::Selector;

use crate::api::Api;

/// The error of a watch. It never occurs here, because the host watches, retries, and
/// shows the state of each watch.
pub type Error = Infallible;

/// Selects the objects to watch. The default is all objects of the [`Api`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// In the syntax of kubectl.
    pub label_selector: Option<String>,
    /// In the syntax of kubectl.
    pub field_selector: Option<String>,
}

impl Config {
    /// Restricts the watch to objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.to_owned());
        self
    }

    /// Restricts the watch to objects with these labels.
    #[must_use]
    pub fn labels_from(self, selector: &Selector) -> Self {
        self.labels(&selector.to_string())
    }

    /// Restricts the watch to objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.to_owned());
        self
    }

    /// Has no effect: the host decides how it lists.
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self
    }

    /// Has no effect: the host decides how it lists.
    #[must_use]
    pub fn streaming_lists(self) -> Self {
        self
    }

    /// Has no effect: the host decides how it lists.
    #[must_use]
    pub fn page_size(self, _: u32) -> Self {
        self
    }

    /// Has no effect: the host decides how it watches.
    #[must_use]
    pub fn timeout(self, _: u32) -> Self {
        self
    }

    /// Converts the configuration to a watch of the SDK.
    pub(crate) fn watch<K>(&self, api: &Api<K>) -> wasmctl::Watch {
        let kind = &api.resource;
        let namespaces: Vec<&str> = api.namespace().into_iter().collect();
        wasmctl::Watch::new(&kind.group, &kind.version, &kind.kind)
            .namespaces(&namespaces)
            .labels(self.label_selector.as_deref().unwrap_or_default())
            .fields(self.field_selector.as_deref().unwrap_or_default())
    }
}
