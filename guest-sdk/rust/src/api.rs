// SPDX-License-Identifier: Apache-2.0
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::ser::Serialize;

use crate::client::Client;
use crate::error::Error;
use crate::imports;
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams};

/// A Rust type for a kind of Kubernetes. serde decodes and encodes it. See
/// [`resource!`](crate::resource).
pub trait Resource {
    /// The group and version, `apps/v1` or `v1`.
    const API_VERSION: &'static str;
    /// The kind, `Deployment`.
    const KIND: &'static str;
}

/// Sets the kind of a type: `resource!(Greeting, "example.com/v1", "Greeting")`.
///
/// For a type of another crate, for example k8s-openapi, wrap it in a type of your own,
/// or use [`Api::namespaced_with`].
#[macro_export]
macro_rules! resource {
    ($type:ty, $api_version:expr, $kind:expr) => {
        impl $crate::Resource for $type {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = $kind;
        }
    };
}

/// The objects of one type, in one namespace or in all: a typed [`Client`], as in
/// kube-rs.
///
/// Every object that is read is decoded completely. An error is an [`Error`] that wraps
/// an [`ApiError`](crate::ApiError), or reports the part that could not be decoded.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use wasmctl::{Api, Context, Error, Patch, PatchParams};
/// #[derive(Serialize, Deserialize)]
/// struct ConfigMap {
///     metadata: wasmctl::ObjectMeta,
///     data: std::collections::BTreeMap<String, String>,
/// }
///
/// wasmctl::resource!(ConfigMap, "v1", "ConfigMap");
///
/// fn touch(ctx: &Context) -> Result<(), Error> {
///     let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "default");
///     if let Some(map) = maps.get_opt("settings")? {
///         maps.patch(&map.metadata.name, &PatchParams::default(), &Patch::Merge(wasmctl::json!({"data": {"seen": "yes"}})))?;
///     }
///     Ok(())
/// }
/// ```
pub struct Api<'a, K> {
    client: Client<'a>,
    at: ObjectRef,
    type_: PhantomData<fn() -> K>,
}

impl<'a, K: Resource> Api<'a, K> {
    /// The objects of one namespace.
    pub fn namespaced(client: Client<'a>, namespace: &str) -> Self {
        Self::namespaced_with(client, namespace, K::API_VERSION, K::KIND)
    }

    /// The objects of all namespaces, or of a cluster-scoped kind.
    pub fn all(client: Client<'a>) -> Self {
        Self::all_with(client, K::API_VERSION, K::KIND)
    }
}

impl<'a, K> Api<'a, K> {
    /// The objects of one namespace, of the given kind instead of the kind of the type:
    /// for types of other crates.
    pub fn namespaced_with(client: Client<'a>, namespace: &str, api_version: &str, kind: &str) -> Self {
        Api { client, at: ObjectRef::all(api_version, kind).within(namespace), type_: PhantomData }
    }

    /// The objects of all namespaces, of the given kind; see `namespaced_with`.
    pub fn all_with(client: Client<'a>, api_version: &str, kind: &str) -> Self {
        Self::namespaced_with(client, "", api_version, kind)
    }

    fn named(&self, name: &str) -> ObjectRef {
        ObjectRef { name: name.to_owned(), ..self.at.clone() }
    }

    /// Deletes an object; see [`Client::delete`].
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn delete(&self, name: &str, params: &DeleteParams) -> Result<(), Error> {
        Ok(self.client.delete(&self.named(name), params)?)
    }
}

impl<K: DeserializeOwned> Api<'_, K> {
    fn decode(obj: Object<'_>) -> Result<K, Error> {
        obj.decode(&[]).map_err(|e| Error::from(e).context(obj.to_ref()))
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn get(&self, name: &str) -> Result<K, Error> {
        Self::decode(self.client.get(&self.named(name))?)
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        match self.client.get(&self.named(name)) {
            Err(e) if e.is_not_found() => Ok(None),
            other => Self::decode(other?).map(Some),
        }
    }

    /// Reads all objects, page by page; see [`Client::all`].
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn list(&self, params: &ListParams) -> Result<Vec<K>, Error> {
        self.client.all(&self.at, params).map(|obj| Self::decode(obj?)).collect()
    }

    /// Changes an object and returns the stored object.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn patch<P: Serialize>(&self, name: &str, params: &PatchParams, patch: &Patch<P>) -> Result<K, Error> {
        Self::decode(self.client.patch(&self.named(name), patch, params)?)
    }

    /// `patch` of the status subresource.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn patch_status<P: Serialize>(&self, name: &str, params: &PatchParams, patch: &Patch<P>) -> Result<K, Error> {
        self.patch(name, &params.of_subresource("status"), patch)
    }
}

impl<K: Serialize + DeserializeOwned> Api<'_, K> {
    /// Creates an object and returns the stored object.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn create(&self, params: &PostParams, obj: &K) -> Result<K, Error> {
        Self::decode(self.client.write(&imports::API_CREATE, &self.at, obj, params)?)
    }

    /// Replaces an object and returns the stored object; see [`Client::update`].
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn replace(&self, name: &str, params: &PostParams, obj: &K) -> Result<K, Error> {
        Self::decode(self.client.write(&imports::API_UPDATE, &self.named(name), obj, params)?)
    }

    /// `replace` of the status subresource.
    ///
    /// # Errors
    ///
    /// See [`Api`].
    pub fn replace_status(&self, name: &str, params: &PostParams, obj: &K) -> Result<K, Error> {
        self.replace(name, &params.of_subresource("status"), obj)
    }
}
