// SPDX-License-Identifier: Apache-2.0
use std::fmt::Debug;

use either::Either;
use kube_core::metadata::PartialObjectMeta;
use kube_core::object::ObjectList;
use kube_core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube_core::response::Status;
use kube_core::TypeMeta;
use serde::de::DeserializeOwned;
use serde::Serialize;
use wasmctl::{ApiError, Client, Object};

use super::Api;
use crate::error::{Error, Result};
use crate::executor::ask;
use crate::params;

/// Decodes an object of the host.
pub(crate) fn decode<T: DeserializeOwned>(obj: &Object<'_>) -> Result<T> {
    Ok(obj.decode(&[])?)
}

/// The objects of the SDK, which can send any object.
type Objects<'a> = wasmctl::Api<'a, Object<'static>>;

/// Converts the error of a call to one that may cross threads, as futures may.
fn answer<T>(result: std::result::Result<T, wasmctl::Error>) -> std::result::Result<T, ApiError> {
    result.map_err(|e| {
        let other = || ApiError::new(wasmctl::status::INTERNAL, "Internal", e.to_string());
        e.api().cloned().unwrap_or_else(other)
    })
}

/// Converts a missing object to `None`.
fn optional<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(Error::Api(e)) if e.code == 404 => Ok(None),
        other => other.map(Some),
    }
}

impl<K> Api<K> {
    fn objects<'a>(at: &wasmctl::ObjectRef, client: Client<'a>) -> Objects<'a> {
        wasmctl::Api::namespaced_with(client, &at.namespace, &at.api_version, &at.kind)
    }

    async fn fetch(&self, name: &str, params: &GetParams) -> Result<Object<'static>> {
        let (at, params) = (self.at(name), params::get(params));
        ask(move |ctx| ctx.client().get_with(&at, &params)).await
    }

    /// Changes an object, or a subresource of it, and returns the answer.
    pub(crate) async fn send<P: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Object<'static>> {
        let params = wasmctl::PatchParams { subresource: subresource.to_owned(), ..params::patch(params) };
        self.send_body(name, params, params::body(patch)?).await
    }

    /// `send` with an encoded patch.
    pub(crate) async fn send_body(
        &self,
        name: &str,
        params: wasmctl::PatchParams,
        patch: wasmctl::Patch<Object<'static>>,
    ) -> Result<Object<'static>> {
        let at = self.at(name);
        ask(move |ctx| ctx.client().patch(&at, &patch, &params)).await
    }

    async fn page<T: DeserializeOwned + Clone>(&self, params: &ListParams) -> Result<ObjectList<T>> {
        let (at, params) = (self.at(""), params::list(params));
        let list = ask(move |ctx| ctx.client().list(&at, &params)).await?;
        let items = list.items().map(|obj| decode(&obj)).collect::<Result<_>>()?;
        let list = list.into_object();
        let types = TypeMeta { api_version: list.api_version().to_owned(), kind: list.kind().to_owned() };
        Ok(ObjectList { types, metadata: list.decode(&["metadata"])?, items })
    }
}

impl<K: Clone + DeserializeOwned + Debug> Api<K> {
    /// Reads an object from the API server.
    pub async fn get(&self, name: &str) -> Result<K> {
        self.get_with(name, &GetParams::default()).await
    }

    /// Reads an object at a given resourceVersion.
    pub async fn get_with(&self, name: &str, params: &GetParams) -> Result<K> {
        decode(&self.fetch(name, params).await?)
    }

    /// Reads an object; `None` if it does not exist.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>> {
        optional(self.get(name).await)
    }

    /// Reads the metadata of an object. The host reads the complete object.
    pub async fn get_metadata(&self, name: &str) -> Result<PartialObjectMeta<K>> {
        decode(&self.fetch(name, &GetParams::default()).await?)
    }

    /// Reads the metadata of an object; `None` if it does not exist.
    pub async fn get_metadata_opt(&self, name: &str) -> Result<Option<PartialObjectMeta<K>>> {
        optional(self.get_metadata(name).await)
    }

    /// Reads all objects, or one page if there is a limit.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>> {
        self.page(params).await
    }

    /// Reads the metadata of objects.
    pub async fn list_metadata(&self, params: &ListParams) -> Result<ObjectList<PartialObjectMeta<K>>> {
        self.page(params).await
    }

    /// Creates an object and returns the stored object.
    pub async fn create(&self, params: &PostParams, data: &K) -> Result<K>
    where
        K: Serialize,
    {
        let (at, params, obj) = (self.at(""), params::post(params), Object::new(data)?);
        decode(&ask(move |ctx| answer(Self::objects(&at, ctx.client()).create(&params, &obj))).await?)
    }

    /// Replaces an object and returns the stored object. The data must have the
    /// resourceVersion that was read.
    pub async fn replace(&self, name: &str, params: &PostParams, data: &K) -> Result<K>
    where
        K: Serialize,
    {
        decode(&self.put(name, "", params, Object::new(data)?).await?)
    }

    pub(super) async fn put(
        &self,
        name: &str,
        subresource: &str,
        params: &PostParams,
        obj: Object<'static>,
    ) -> Result<Object<'static>> {
        let at = self.at(name);
        let params = wasmctl::PostParams { subresource: subresource.to_owned(), ..params::post(params) };
        ask(move |ctx| answer(Self::objects(&at, ctx.client()).replace(&at.name, &params, &obj))).await
    }

    /// Changes an object and returns the stored object.
    pub async fn patch<P: Serialize + Debug>(&self, name: &str, params: &PatchParams, patch: &Patch<P>) -> Result<K> {
        decode(&self.send(name, "", params, patch).await?)
    }

    /// Changes an object and returns its metadata.
    pub async fn patch_metadata<P: Serialize + Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<PartialObjectMeta<K>> {
        decode(&self.send(name, "", params, patch).await?)
    }

    /// Deletes an object. Its finalizers may delay that. The answer is always `Right`,
    /// because the host does not return the deleted object.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Either<K, Status>> {
        let (at, params) = (self.at(name), params::delete(params));
        ask(move |ctx| ctx.client().delete(&at, &params)).await?;
        Ok(Either::Right(Status::success()))
    }
}
