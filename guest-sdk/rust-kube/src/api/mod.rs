// SPDX-License-Identifier: Apache-2.0
//! The objects of one type, and the parameters of calls.

mod calls;
mod subresource;

use std::fmt;
use std::marker::PhantomData;

pub use k8s_openapi::api::autoscaling::v1::{Scale, ScaleSpec, ScaleStatus};
#[cfg(feature = "admission")]
pub use kube_core::admission;
pub use kube_core::dynamic::{ApiResource, DynamicObject};
pub use kube_core::gvk::{GroupVersionKind, GroupVersionResource};
pub use kube_core::metadata::{ListMeta, ObjectMeta, PartialObjectMeta, PartialObjectMetaExt, TypeMeta};
pub use kube_core::object::{NotUsed, Object, ObjectList};
pub use kube_core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
    ValidationDirective, VersionMatch,
};
use kube_core::{DynamicResourceScope, NamespaceResourceScope};
pub use kube_core::{Resource, ResourceExt};
use wasmctl::ObjectRef;

use crate::client::Client;

/// The objects of one type, in one namespace or in all.
///
/// Each method is a call of the host within the capabilities of the module. Every object
/// is decoded completely. An error is an [`Error::Api`](crate::Error::Api) with the code
/// and reason of the API server.
pub struct Api<K> {
    client: Client,
    /// The kind and its plural.
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    type_: PhantomData<fn() -> K>,
}

impl<K: Resource> Api<K> {
    /// The objects of all namespaces, or of a cluster-scoped kind, for a type without a
    /// fixed kind.
    pub fn all_with(client: Client, dyntype: &K::DynamicType) -> Self {
        Api { client, resource: ApiResource::erase::<K>(dyntype), namespace: None, type_: PhantomData }
    }

    /// The objects of one namespace, for a type without a fixed kind.
    pub fn namespaced_with(client: Client, ns: &str, dyntype: &K::DynamicType) -> Self
    where
        K: Resource<Scope = DynamicResourceScope>,
    {
        Api::all_with(client, dyntype).within(ns)
    }

    /// The objects of the namespace `default`, for a type without a fixed kind.
    pub fn default_namespaced_with(client: Client, dyntype: &K::DynamicType) -> Self
    where
        K: Resource<Scope = DynamicResourceScope>,
    {
        let ns = client.default_namespace().to_owned();
        Api::namespaced_with(client, &ns, dyntype)
    }

    /// The objects of all namespaces, or of a cluster-scoped kind.
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Api::all_with(client, &K::DynamicType::default())
    }

    /// The objects of one namespace.
    pub fn namespaced(client: Client, ns: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(client).within(ns)
    }

    /// The objects of the namespace `default`.
    pub fn default_namespaced(client: Client) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let ns = client.default_namespace().to_owned();
        Api::namespaced(client, &ns)
    }
}

impl<K> Api<K> {
    /// The namespace, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The client.
    pub fn into_client(self) -> Client {
        self.client
    }

    fn within(mut self, ns: &str) -> Self {
        self.namespace = Some(ns.to_owned());
        self
    }

    /// A reference to the object of that name, or to all objects if the name is "".
    pub(crate) fn at(&self, name: &str) -> ObjectRef {
        let at = ObjectRef::new(self.resource.api_version.as_str(), self.resource.kind.as_str(), name);
        at.within(self.namespace.as_deref().unwrap_or_default())
    }
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        let (resource, namespace) = (self.resource.clone(), self.namespace.clone());
        Api { client: self.client.clone(), resource, namespace, type_: PhantomData }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Api({} {})", self.resource.api_version, self.at(""))
    }
}
