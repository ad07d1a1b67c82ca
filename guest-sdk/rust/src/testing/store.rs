// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeMap, BTreeSet};

use super::apply::FieldSet;
use super::json::{Json, Map};
use crate::meta::ObjectRef;
use crate::time::Time;

/// The name of a stored object. All versions of a kind share one id.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Id {
    pub(super) fn of(obj: &Json) -> Self {
        Id::of_ref(&ref_of(obj))
    }

    pub(super) fn of_ref(at: &ObjectRef) -> Self {
        Id {
            group: at.api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: at.kind.clone(),
            namespace: at.namespace.clone(),
            name: at.name.clone(),
        }
    }
}

pub(super) fn ref_of(obj: &Json) -> ObjectRef {
    ObjectRef::new(obj.str(&["apiVersion"]), obj.str(&["kind"]), obj.str(&["metadata", "name"]))
        .within(obj.str(&["metadata", "namespace"]))
}

/// One write. `old` is `None` for a created object, `new` for a removed one.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: Id,
    pub(super) old: Option<Json>,
    pub(super) new: Option<Json>,
}

/// The objects of the cluster and information on their kinds.
#[derive(Default)]
pub(super) struct Store {
    pub(super) objects: BTreeMap<Id, Json>,
    /// The fields that each manager applied.
    pub(super) applied: BTreeMap<Id, BTreeMap<String, FieldSet>>,
    pub(super) version: i64,
    uids: u32,
    pub(super) cluster_scoped: BTreeSet<String>,
    pub(super) plurals: BTreeMap<String, String>,
    /// The writes that `Host::run` has not handled yet.
    pub(super) changes: Vec<Change>,
    /// The uids of objects that were removed.
    pub(super) gone: BTreeSet<String>,
}

const CLUSTER_SCOPED: &str = "Namespace Node PersistentVolume ClusterRole ClusterRoleBinding CustomResourceDefinition \
    StorageClass PriorityClass IngressClass RuntimeClass APIService MutatingWebhookConfiguration \
    ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding CSIDriver CSINode \
    VolumeAttachment CertificateSigningRequest";

impl Store {
    pub(super) fn new() -> Self {
        Store {
            version: 1000,
            cluster_scoped: CLUSTER_SCOPED.split_whitespace().map(str::to_owned).collect(),
            plurals: BTreeMap::from([("Endpoints".to_owned(), "endpoints".to_owned())]),
            ..Store::default()
        }
    }

    /// Stores an object unchanged, plus the fields that the API server would set.
    pub(super) fn put(&mut self, at: &Id, mut obj: Json, now: Time) -> Json {
        let meta = obj.metadata();
        if !meta.contains_key("uid") {
            self.uids += 1;
            let uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
            meta.insert("uid".into(), Json::Str(uid));
        }
        meta.entry("generation".into()).or_insert(Json::Int(1));
        meta.entry("creationTimestamp".into()).or_insert_with(|| Json::Str(now.to_string()));
        self.version += 1;
        meta.insert("resourceVersion".into(), Json::Str(self.version.to_string()));
        let old = self.objects.insert(at.clone(), obj.clone());
        self.changes.push(Change { at: at.clone(), old, new: Some(obj.clone()) });
        obj
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, at: &Id) {
        if let Some(old) = self.objects.remove(at) {
            self.version += 1;
            self.gone.insert(old.str(&["metadata", "uid"]).to_owned());
            self.applied.remove(at);
            self.changes.push(Change { at: at.clone(), old: Some(old), new: None });
        }
    }

    /// Replaces `old` by an object and returns the stored object. As in the API server,
    /// an object without changes is not written, and the generation counts changes
    /// outside of metadata and status.
    pub(super) fn replace(&mut self, at: &Id, old: &Json, mut obj: Json, now: Time) -> Json {
        let old_meta = old.at(&["metadata"]).as_map().cloned().unwrap_or_default();
        let meta = obj.metadata();
        for key in ["uid", "generation", "creationTimestamp", "resourceVersion", "deletionTimestamp"] {
            meta.remove(key);
            if let Some(v) = old_meta.get(key) {
                meta.insert(key.to_owned(), v.clone());
            }
        }
        if obj == *old {
            return obj;
        }
        if desired(old) != desired(&obj) {
            if let Json::Int(g) = obj.metadata().entry("generation".into()).or_insert(Json::Int(0)) {
                *g += 1;
            }
        }
        if obj.at(&["metadata", "deletionTimestamp"]) != &Json::Null && finalizers(&obj).is_empty() {
            self.remove(at);
            return obj;
        }
        self.put(at, obj, now)
    }
}

/// The part of an object whose changes the generation counts.
fn desired(obj: &Json) -> Map {
    let mut m = obj.as_map().cloned().unwrap_or_default();
    for key in ["metadata", "status", "apiVersion"] {
        m.remove(key);
    }
    m
}

pub(super) fn finalizers(obj: &Json) -> &[Json] {
    obj.at(&["metadata", "finalizers"]).as_list()
}
