// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::object::Object;
use crate::owner::OwnerReference;
use crate::time::Time;
use crate::value::Value;

/// The name of an object within its kind. `namespace` is empty for a
/// cluster-scoped kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, or "".
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// Makes a key from a namespace, which may be "", and a name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn read(v: Value<'_>) -> Self {
        Self::new(v.str(&["namespace"]), v.str(&["name"]))
    }

    /// A reference to the object of that name and of the given kind.
    pub fn to_ref(&self, api_version: impl Into<String>, kind: impl Into<String>) -> ObjectRef {
        ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Whether an object may have that name; the host refuses others.
    pub(crate) fn is_valid(&self) -> bool {
        const MOST: usize = 253; // bytes of a name in Kubernetes
        !self.name.is_empty() && self.name.len() <= MOST && self.namespace.len() <= MOST
    }
}

/// In the form that messages use: `{namespace?, name}`.
impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        if !self.namespace.is_empty() {
            map.serialize_entry("namespace", &self.namespace)?;
        }
        map.serialize_entry("name", &self.name)?;
        map.end()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A reference to an object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The group and version, for example `apps/v1` or `v1`.
    pub api_version: String,
    /// The kind, for example `Deployment`.
    pub kind: String,
    /// The namespace; empty for a cluster-scoped kind. There is no default.
    pub namespace: String,
    /// The name; empty in a reference to all objects of a kind.
    pub name: String,
}

impl ObjectRef {
    /// A reference to the cluster-scoped object of that name; see
    /// [`within`](Self::within).
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace: String::new(), name: name.into() }
    }

    /// A reference to all objects of a kind, for lists.
    pub fn all(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self::new(api_version, kind, "")
    }

    /// The same reference in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The reference without its kind.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), self.name.as_str())
    }
}

/// `Kind[namespace/name]`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind, self.key())
    }
}

/// The metadata of an object of a struct type:
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Greeting {
///     metadata: wasmctl::ObjectMeta,
///     spec: GreetingSpec,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct GreetingSpec {
///     text: String,
/// }
///
/// wasmctl::resource!(Greeting, "examples.com/v1", "Greeting");
/// ```
///
/// It has the fields that reconcilers use. A decoded struct loses all fields that its
/// type does not name. To change an object that other writers share, use [`Object::set`],
/// which preserves the other fields, or server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The name.
    pub name: String,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Identifies the object: an object that is created later with the same name has
    /// another UID.
    pub uid: String,
    /// The version of the object that was read.
    pub resource_version: String,
    /// The number of changes of the spec.
    pub generation: i64,
    /// The time at which the object was created.
    pub creation_timestamp: Option<Time>,
    /// The time at which the deletion of the object was requested.
    pub deletion_timestamp: Option<Time>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The finalizers, which delay the deletion of the object.
    pub finalizers: Vec<String>,
    /// The objects that own this one.
    pub owner_references: Vec<OwnerReference>,
}

impl<'de> Deserialize<'de> for ObjectMeta {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let m = Object::deserialize(d)?;
        Ok(ObjectMeta {
            name: m.str(&["name"]).to_owned(),
            namespace: m.str(&["namespace"]).to_owned(),
            uid: m.str(&["uid"]).to_owned(),
            resource_version: m.str(&["resourceVersion"]).to_owned(),
            generation: m.int(&["generation"]),
            creation_timestamp: m.time(&["creationTimestamp"]),
            deletion_timestamp: m.time(&["deletionTimestamp"]),
            labels: m.string_map(&["labels"]),
            annotations: m.string_map(&["annotations"]),
            finalizers: m.strings(&["finalizers"]),
            owner_references: m.elements(&["ownerReferences"]).map(OwnerReference::read).collect(),
        })
    }
}

impl Serialize for ObjectMeta {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for (key, value) in [
            ("name", &self.name),
            ("namespace", &self.namespace),
            ("uid", &self.uid),
            ("resourceVersion", &self.resource_version),
        ] {
            if !value.is_empty() {
                map.serialize_entry(key, value)?;
            }
        }
        if self.generation != 0 {
            map.serialize_entry("generation", &self.generation)?;
        }
        for (key, value) in
            [("creationTimestamp", &self.creation_timestamp), ("deletionTimestamp", &self.deletion_timestamp)]
        {
            if value.is_some() {
                map.serialize_entry(key, value)?;
            }
        }
        for (key, value) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !value.is_empty() {
                map.serialize_entry(key, value)?;
            }
        }
        if !self.finalizers.is_empty() {
            map.serialize_entry("finalizers", &self.finalizers)?;
        }
        if !self.owner_references.is_empty() {
            map.serialize_entry("ownerReferences", &self.owner_references)?;
        }
        map.end()
    }
}
