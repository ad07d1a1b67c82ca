use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use crate::value::Value;
use crate::watch::Watch;
use crate::wire::{append_array, append_str, Message};

/// Describes a module. The operator can override it, and decides which capabilities to
/// grant.
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
    /// Kinds whose objects concern others; see [`Watch::map`].
    pub watches: Vec<Watch>,
    /// The rights that the client, the cache, events and declared results need. You need
    /// none to watch, to read the kind of `for_`, or to write its status.
    pub capabilities: Vec<Capability>,
    /// The name of the finalizer for
    /// [`Reconciler::finalize`](crate::Reconciler::finalize): `example.com/cleanup`. A name
    /// without a domain is only for custom resources that have it already, and wasmctl
    /// warns of it.
    pub finalizer: String,
    /// Bounds what one instance may use.
    pub limits: Limits,
    /// The number of objects reconciled at a time; 0 leaves it to the host.
    pub concurrency: u32,
    /// The settings' defaults; see [`Context::config`](crate::Context::config).
    pub config: BTreeMap<String, String>,
    /// Abilities that the module needs: a host without them does not load it.
    pub requires: Vec<String>,
    /// Optional abilities (see [`Context::host_has`](crate::Context::host_has)).
    pub wants: Vec<String>,
}

/// A right to use the API, as an RBAC rule of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capability {
    /// Empty for the core resources.
    pub group: String,
    /// The plural, `configmaps`.
    pub resource: String,
    /// If given, the rule covers these and not the resource itself.
    pub subresources: Vec<String>,
    /// get, list, create, update, patch, delete, or `*` for all. Apply needs patch; an
    /// apply that creates an object also needs create.
    pub verbs: Vec<String>,
    /// Narrows it; empty is all.
    pub namespaces: Vec<String>,
    /// Narrows it; empty is all.
    pub names: Vec<String>,
    /// If given, the only fields of an object that create, update and patch may touch:
    /// `spec.replicas`, `metadata.labels`, `spec.containers[name=app].image`. Each covers
    /// everything below it (abi/ABI.md, section 8).
    pub fields: Vec<String>,
}

impl Capability {
    /// The right to do `verbs` with a resource of a group, "" for the core ones.
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

/// The capability as in a manifest, ready to paste.
impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.write(&mut Message::new(&mut bytes));
        Value::of(&bytes).serialize(s)
    }
}

/// Defines the limits, and how they are written.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Limits what the module may use; see abi/ABI.md, section 8. Zero leaves a limit
        /// to the host, which takes the lower of these and its own.
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
    /// Work of one call, in units of about an instruction.
    fuel
    /// Stack of one call, in bytes: how deeply functions nest.
    stack
    /// The request of one operation, in bytes.
    request_bytes
    /// What one call returns, in bytes.
    result_bytes
    /// Lines of the log, of all instances in a second.
    log_lines
    /// Bytes of the log, of all instances in a second.
    log_bytes
    /// Events of one call.
    events
    /// Events of all instances in a second.
    event_rate
    /// Requests to the API server, of all instances in a second.
    api_rate
    /// Requests to the API server at a time, of all instances.
    api_in_flight
    /// Objects of one list.
    list_items
    /// The answer of one list, in bytes.
    list_bytes
    /// Metrics of all instances.
    metric_series
    /// Calls of one instance, after which a fresh one takes its place.
    instance_calls
    /// Memory in bytes above which an instance is replaced after its call.
    high_water
    /// Instances that runs may need in a second.
    instance_rate
}

impl Manifest {
    /// Writes the manifest with what the SDK itself knows: the optional exports
    /// that are real (`hooks`) among others.
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
        list(&mut m, "owns", &self.owns, Watch::write);
        list(&mut m, "watches", &self.watches, Watch::write);
        list(&mut m, "capabilities", &self.capabilities, Capability::write);
        m.str("finalizer", &self.finalizer);
        self.limits.write(&mut m);
        m.int("concurrency", i64::from(self.concurrency));
        if !self.config.is_empty() {
            m.map("config", |c| self.config.iter().for_each(|(k, v)| c.text(k, v)));
        }
        m.strs("requires", &self.requires);
        m.strs("wants", &self.wants);
        let dst_hooks = m.key("hooks"); // this SDK exports all that it has, used or not
        append_array(dst_hooks, hooks.len());
        hooks.iter().for_each(|h| append_str(dst_hooks, h));
        drop(m);
        dst
    }
}

fn list<T>(m: &mut Message<'_>, key: &str, items: &[T], write: impl Fn(&T, &mut Message<'_>)) {
    if items.is_empty() {
        return;
    }
    let dst = m.key(key);
    append_array(dst, items.len());
    for item in items {
        write(item, &mut Message::new(dst));
    }
}
