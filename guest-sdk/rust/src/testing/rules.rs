// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use super::json::Json;
use super::selector::selects;
use super::store::Id;
use crate::manifest::{Capability, Manifest};
use crate::watch::Watch;

/// The parts of a manifest that the host uses during a run.
#[derive(Clone, Default)]
pub(super) struct Rules {
    pub(super) name: String,
    pub(super) for_: Watched,
    pub(super) owns: Vec<Watched>,
    pub(super) watches: Vec<Watched>,
    pub(super) capabilities: Vec<Capability>,
    pub(super) config: BTreeMap<String, String>,
    pub(super) finalizer: String,
}

/// The parts of a watch that the host uses.
#[derive(Clone, Default)]
pub(super) struct Watched {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) namespaces: Vec<String>,
    labels: String,
    pub(super) metadata_only: bool,
    pub(super) deletes: bool,
}

impl Watched {
    pub(super) fn of(w: &Watch) -> Self {
        Watched {
            group: w.group.clone(),
            kind: w.kind.clone(),
            api_version: w.api_version(),
            namespaces: w.namespaces.clone(),
            labels: w.label_selector.clone(),
            metadata_only: w.metadata_only,
            deletes: w.deletes,
        }
    }

    /// Whether objects of that kind are watched.
    pub(super) fn is(&self, at: &Id) -> bool {
        self.group == at.group && self.kind == at.kind
    }

    /// Whether the watch selects an object of its kind.
    pub(super) fn covers(&self, obj: &Json) -> bool {
        let namespace = obj.str(&["metadata", "namespace"]);
        (self.namespaces.is_empty() || self.namespaces.iter().any(|n| n == namespace))
            && selects(&self.labels, obj)
                .unwrap_or_else(|| panic!("testing: label selector {:?}: is invalid", self.labels))
    }
}

impl Rules {
    pub(super) fn of(m: &Manifest) -> Self {
        Rules {
            name: m.name.clone(),
            for_: Watched::of(&m.for_),
            owns: m.owns.iter().map(Watched::of).collect(),
            watches: m.watches.iter().map(Watched::of).collect(),
            capabilities: m.capabilities.clone(),
            config: m.config.clone(),
            finalizer: m.finalizer.clone(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Watched> {
        std::iter::once(&self.for_).chain(&self.owns).chain(&self.watches)
    }
}
