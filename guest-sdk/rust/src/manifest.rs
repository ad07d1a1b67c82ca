// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use crate::conversion::Conversion;
use crate::value::Value;
use crate::watch::Watch;
use crate::webhook::Webhook;
use crate::wire::{append_array, append_str, Message};

/// Describes a module. The operator of the host can override it, and decides which
/// capabilities to grant.
#[derive(Debug, Default)]
pub struct Manifest {
    /// For people.
    pub name: String,
    /// For people.
    pub version: String,
    /// The kind that is reconciled.
    pub for_: Watch,
    /// Kinds whose changes reconcile their owners, and that
    /// [`Action::prune`](crate::Action::prune) may delete.
    pub owns: Vec<Watch>,
    /// Further kinds; [`Watch::map`] selects the objects that a change concerns.
    pub watches: Vec<Watch>,
    /// The rights that the client, the cache, events and declared results need. You need
    /// none to watch, to read the kind of `for_`, or to write its status.
    pub capabilities: Vec<Capability>,
    /// The name of the finalizer for
    /// [`Reconciler::finalize`](crate::Reconciler::finalize), for example
    /// `example.com/cleanup`. Use a name without a domain only for custom resources that
    /// have it already; wasmctl warns about it.
    pub finalizer: String,
    /// Requests to the API server that the module judges before they take effect. Each
    /// needs the right to do so, in the grant of the operator.
    pub webhooks: Vec<Webhook>,
    /// Kinds whose objects the module converts between versions.
    pub conversions: Vec<Conversion>,
    /// Bounds the resources of one instance.
    pub limits: Limits,
    /// The number of objects reconciled at a time; if 0, the host decides.
    pub concurrency: u32,
    /// The defaults of the settings; see [`Context::config`](crate::Context::config).
    pub config: BTreeMap<String, String>,
    /// Abilities that the module needs: a host without them does not load it.
    pub requires: Vec<String>,
    /// Optional abilities (see [`Context::host_has`](crate::Context::host_has)).
    pub wants: Vec<String>,
}

/// A right to use the API, like an RBAC rule for one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capability {
    /// Empty for the core resources.
    pub group: String,
    /// The plural name, for example `configmaps`.
    pub resource: String,
    /// If given, the rule covers these subresources, but not the resource itself.
    pub subresources: Vec<String>,
    /// get, list, create, update, patch, delete, or `*` for all. Apply needs patch; an
    /// apply that creates an object also needs create.
    pub verbs: Vec<String>,
    /// Narrows the rule; if empty, it covers all namespaces.
    pub namespaces: Vec<String>,
    /// Narrows the rule; if empty, it covers all names.
    pub names: Vec<String>,
    /// If given, the only fields of an object that create, update and patch may touch:
    /// `spec.replicas`, `metadata.labels`, `spec.containers[name=app].image`. Each covers
    /// everything below it (abi/ABI.md, section 8).
    pub fields: Vec<String>,
}

impl Capability {
    /// The right to use `verbs` on a resource of a group; "" is the core group.
    pub fn new(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Capability {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
            ..Capability::default()
        }
    }

    pub(crate) fn read(v: Value<'_>) -> Self {
        Capability {
            group: v.str(&["group"]).to_owned(),
            resource: v.str(&["resource"]).to_owned(),
            subresources: v.strings(&["subresources"]),
            verbs: v.strings(&["verbs"]),
            namespaces: v.strings(&["namespaces"]),
            names: v.strings(&["names"]),
            fields: v.strings(&["fields"]),
        }
    }

    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.text("group", &self.group);
        m.text("resource", &self.resource);
        m.strs("subresources", &self.subresources);
        m.strs("verbs", &self.verbs);
        m.strs("namespaces", &self.namespaces);
        m.strs("names", &self.names);
        m.strs("fields", &self.fields);
    }
}

/// The capability in its form in a manifest, ready to paste.
impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.write(&mut Message::new(&mut bytes));
        Value::of(&bytes).serialize(s)
    }
}

/// Defines the limits and their encoding.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Bounds the resources of the module; see abi/ABI.md, section 8. If a limit is
        /// 0, the host decides. A module can only lower the limits of the host.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Limits {
            fn write(&self, m: &mut Message<'_>) {
                if *self == Limits::default() {
                    return;
                }
                m.map("limits", |l| {
                    $(l.int(stringify!($name), i64::try_from(self.$name).unwrap_or(i64::MAX));)*
                });
            }
        }
    };
}

limits! {
    /// Memory of one instance, in bytes.
    memory
    /// Time of one call, in milliseconds.
    timeout
    /// Operations of one call.
    host_calls
    /// Work of one call, about one unit for each instruction.
    fuel
    /// Stack of one call, in bytes, as the host estimates it.
    stack
    /// Log lines of all instances in one second.
    log_lines
    /// Events of all instances in one second.
    event_rate
    /// Requests to the API server of all instances in one second.
    api_rate
    /// Metric series of all instances.
    metric_series
}

impl Manifest {
    /// Writes the manifest with the fields that the SDK adds, such as `hooks`: the
    /// optional exports that have a function.
    pub(crate) fn describe(&self, hooks: &[&str]) -> Vec<u8> {
        let mut dst = Vec::new();
        let mut m = Message::new(&mut dst);
        m.int("abi", 1);
        m.text("sdk", concat!("rust/", env!("CARGO_PKG_VERSION")));
        m.str("name", &self.name);
        m.str("version", &self.version);
        if !self.for_.kind.is_empty() {
            m.map("for", |w| self.for_.write(w));
        }
        m.maps("owns", &self.owns, Watch::write);
        m.maps("watches", &self.watches, Watch::write);
        m.maps("capabilities", &self.capabilities, Capability::write);
        m.str("finalizer", &self.finalizer);
        self.limits.write(&mut m);
        m.maps("webhooks", &self.webhooks, Webhook::write);
        m.maps("conversions", &self.conversions, Conversion::write);
        m.int("concurrency", i64::from(self.concurrency));
        if !self.config.is_empty() {
            m.map("config", |c| self.config.iter().for_each(|(k, v)| c.text(k, v)));
        }
        m.strs("requires", &self.requires);
        m.strs("wants", &self.wants);
        let dst_hooks = m.key("hooks"); // needed because this SDK exports all entry points, used or not
        append_array(dst_hooks, hooks.len());
        hooks.iter().for_each(|h| append_str(dst_hooks, h));
        drop(m);
        dst
    }
}
