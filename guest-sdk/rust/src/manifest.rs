use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use crate::value::Value;
use crate::watch::Watch;
use crate::wire::{append_array, append_int, append_str, Message};

/// What a module says of itself. Whoever runs the module can override it, and
/// grants its capabilities or not.
#[derive(Debug, Default)]
pub struct Manifest {
    /// For people.
    pub name: String,
    /// For people.
    pub version: String,
    /// The kind that is reconciled.
    pub for_: Watch,
    /// Kinds whose owners are reconciled when they change, and that
    /// [`Action::prune`](crate::Action::prune) may delete.
    pub owns: Vec<Watch>,
    /// Kinds whose objects concern others; see [`Watch::map`].
    pub watches: Vec<Watch>,
    /// The rights that the client, the cache, events and declared results need.
    /// Watching needs none, and reading the kind of `for_` and writing its status
    /// need none.
    pub capabilities: Vec<Capability>,
    /// The name under which the cleanup of
    /// [`Reconciler::finalize`](crate::Reconciler::finalize) holds the objects:
    /// `example.com/cleanup`.
    pub finalizer: String,
    /// Bounds what one instance may use.
    pub limits: Limits,
    /// The number of objects reconciled at a time; 0 leaves it to the host.
    pub concurrency: u32,
    /// The settings' defaults; see [`Context::config`](crate::Context::config).
    pub config: BTreeMap<String, String>,
    /// Abilities of the host without which the module is not loaded.
    pub requires: Vec<String>,
    /// Abilities that the module can do without (see
    /// [`Context::host_has`](crate::Context::host_has)).
    pub wants: Vec<String>,
}

/// A right to use the API, as an RBAC rule of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capability {
    /// Empty for the core resources.
    pub group: String,
    /// The plural, `configmaps`.
    pub resource: String,
    /// Where given, what the rule is about, and not the resource itself.
    pub subresources: Vec<String>,
    /// get, list, create, update, patch, delete, or `*` for all. Apply needs
    /// patch; the API server also wants create from whoever creates by it.
    pub verbs: Vec<String>,
    /// Narrows it; empty is all.
    pub namespaces: Vec<String>,
    /// Narrows it; empty is all.
    pub names: Vec<String>,
    /// Where given, all that create, update and patch may touch of an object, as
    /// patterns: `spec.replicas`, `metadata.labels`,
    /// `spec.containers[name=app].image`.
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

/// As it stands in a manifest, ready to paste.
impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.write(&mut Message::new(&mut bytes));
        Value::of(&bytes).serialize(s)
    }
}

/// Bounds what one instance may use. Zero leaves a limit to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory of one instance, in bytes.
    pub memory: u64,
    /// Time of one call, in milliseconds.
    pub timeout: u64,
    /// Host calls of one call.
    pub host_calls: u64,
    /// Work of one call, in units of about an instruction.
    pub fuel: u64,
    /// Stack of one call, in bytes by the host's estimate.
    pub stack: u64,
    /// Size of the request of one operation, in bytes.
    pub request_bytes: u64,
    /// Size of what one call returns, in bytes.
    pub result_bytes: u64,
    /// Lines that the module logs in a second.
    pub log_lines: u64,
    /// Bytes that the module logs in a second.
    pub log_bytes: u64,
    /// Events of one call.
    pub events: u64,
    /// Events of the module in a second.
    pub event_rate: u64,
    /// Requests to the API server in a second.
    pub api_rate: u64,
    /// Requests to the API server that are under way at once.
    pub api_in_flight: u64,
    /// Objects of one list.
    pub list_items: u64,
    /// Size of one list, in bytes.
    pub list_bytes: u64,
    /// Series of metrics.
    pub metric_series: u64,
    /// Calls after which an instance is replaced by a fresh one.
    pub instance_calls: u64,
    /// Memory beyond which an instance is replaced by a fresh one, in bytes.
    pub high_water: u64,
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

impl Limits {
    fn named(&self) -> [(&'static str, u64); 18] {
        [
            ("memory", self.memory),
            ("timeout", self.timeout),
            ("host_calls", self.host_calls),
            ("fuel", self.fuel),
            ("stack", self.stack),
            ("request_bytes", self.request_bytes),
            ("result_bytes", self.result_bytes),
            ("log_lines", self.log_lines),
            ("log_bytes", self.log_bytes),
            ("events", self.events),
            ("event_rate", self.event_rate),
            ("api_rate", self.api_rate),
            ("api_in_flight", self.api_in_flight),
            ("list_items", self.list_items),
            ("list_bytes", self.list_bytes),
            ("metric_series", self.metric_series),
            ("instance_calls", self.instance_calls),
            ("high_water", self.high_water),
        ]
    }

    fn write(&self, m: &mut Message<'_>) {
        if *self == Limits::default() {
            return;
        }
        m.map("limits", |l| {
            for (key, n) in self.named() {
                if n != 0 {
                    append_int(l.key(key), i64::try_from(n).unwrap_or(i64::MAX));
                }
            }
        });
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
