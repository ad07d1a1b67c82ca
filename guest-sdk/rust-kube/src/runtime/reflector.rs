// SPDX-License-Identifier: Apache-2.0
//! References to objects.

use std::fmt;
use std::hash::{Hash, Hasher};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{ApiResource, DynamicObject, Resource};

/// A reference to an object of a type.
pub struct ObjectRef<K: Resource + ?Sized> {
    /// The kind, for a type without a fixed kind.
    pub dyntype: K::DynamicType,
    /// The name.
    pub name: String,
    /// The namespace; `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Additional data, which equality ignores.
    pub extra: Extra,
}

/// Data of an object that is not part of its name.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Extra {
    /// The version of the object.
    pub resource_version: Option<String>,
    /// The UID of the object.
    pub uid: Option<String>,
}

impl<K: Resource> ObjectRef<K>
where
    K::DynamicType: Default,
{
    /// A reference to the cluster-scoped object of that name; see
    /// [`within`](Self::within).
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::new_with(name, Default::default())
    }

    /// A reference to an object.
    #[must_use]
    pub fn from_obj(obj: &K) -> Self {
        Self::from_obj_with(obj, Default::default())
    }
}

impl<K: Resource> From<&K> for ObjectRef<K>
where
    K::DynamicType: Default,
{
    fn from(obj: &K) -> Self {
        Self::from_obj(obj)
    }
}

impl<K: Resource> ObjectRef<K> {
    /// `new` for a type without a fixed kind.
    #[must_use]
    pub fn new_with(name: &str, dyntype: K::DynamicType) -> Self {
        ObjectRef { dyntype, name: name.to_owned(), namespace: None, extra: Extra::default() }
    }

    /// The same reference in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// `from_obj` for a type without a fixed kind.
    #[must_use]
    pub fn from_obj_with(obj: &K, dyntype: K::DynamicType) -> Self {
        let meta = obj.meta();
        ObjectRef {
            dyntype,
            name: meta.name.clone().unwrap_or_default(),
            namespace: meta.namespace.clone(),
            extra: Extra { resource_version: meta.resource_version.clone(), uid: meta.uid.clone() },
        }
    }

    /// A reference to the owner, if it is of this type.
    pub fn from_owner_ref(namespace: Option<&str>, owner: &OwnerReference, dyntype: K::DynamicType) -> Option<Self> {
        if owner.api_version != K::api_version(&dyntype) || owner.kind != K::kind(&dyntype) {
            return None;
        }
        let extra = Extra { resource_version: None, uid: Some(owner.uid.clone()) };
        Some(ObjectRef { dyntype, name: owner.name.clone(), namespace: namespace.map(str::to_owned), extra })
    }

    /// The reference with its kind as a value.
    pub fn erase(self) -> ObjectRef<DynamicObject> {
        let dyntype = ApiResource::erase::<K>(&self.dyntype);
        ObjectRef { dyntype, name: self.name, namespace: self.namespace, extra: self.extra }
    }

    pub(crate) fn key(&self) -> wasmctl::ObjectKey {
        wasmctl::ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), self.name.as_str())
    }
}

impl<K: Resource> From<ObjectRef<K>> for ObjectReference {
    fn from(r: ObjectRef<K>) -> Self {
        ObjectReference {
            api_version: Some(K::api_version(&r.dyntype).into_owned()),
            kind: Some(K::kind(&r.dyntype).into_owned()),
            name: Some(r.name),
            namespace: r.namespace,
            resource_version: r.extra.resource_version,
            uid: r.extra.uid,
            ..ObjectReference::default()
        }
    }
}

// Derived implementations would require the traits of K, although only its kind is used.

impl<K: Resource> Clone for ObjectRef<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        ObjectRef { dyntype: self.dyntype.clone(), name, namespace, extra: self.extra.clone() }
    }
}

impl<K: Resource> PartialEq for ObjectRef<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.dyntype == other.dyntype && self.name == other.name && self.namespace == other.namespace
    }
}

impl<K: Resource> Eq for ObjectRef<K> where K::DynamicType: Eq {}

impl<K: Resource> Hash for ObjectRef<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.dyntype, &self.name, &self.namespace).hash(state);
    }
}

impl<K: Resource> fmt::Debug for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectRef({self})")
    }
}

/// `Kind.version.group/name.namespace`.
impl<K: Resource> fmt::Display for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, version, group) = (K::kind(&self.dyntype), K::version(&self.dyntype), K::group(&self.dyntype));
        write!(f, "{kind}.{version}.{group}/{}", self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, ".{namespace}"),
            None => Ok(()),
        }
    }
}
