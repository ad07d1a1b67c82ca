// SPDX-License-Identifier: Apache-2.0
use std::fmt::Debug;

use k8s_openapi::api::autoscaling::v1::Scale;
use kube_core::params::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde::Serialize;
use wasmctl::Object;

use super::calls::decode;
use super::Api;
use crate::error::Result;
use crate::executor::ask;
use crate::params;

impl<K: Clone + DeserializeOwned + Debug> Api<K> {
    async fn fetch_subresource(&self, subresource: &str, name: &str) -> Result<Object<'static>> {
        let (at, subresource) = (self.at(name), subresource.to_owned());
        ask(move |ctx| ctx.client().subresource(&at, &subresource).get()).await
    }

    /// Reads a subresource.
    pub async fn get_subresource(&self, subresource: &str, name: &str) -> Result<K> {
        decode(&self.fetch_subresource(subresource, name).await?)
    }

    /// Sends a body, for example an Eviction or a TokenRequest, and returns the answer.
    pub async fn create_subresource<I: Serialize, T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        data: &I,
    ) -> Result<T> {
        let (at, subresource, params) = (self.at(name), subresource.to_owned(), params::post(params));
        let body = Object::new(data)?;
        decode(&ask(move |ctx| ctx.client().subresource(&at, &subresource).create(&body, &params)).await?)
    }

    /// Changes a subresource.
    pub async fn patch_subresource<P: Serialize + Debug>(
        &self,
        subresource: &str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K> {
        decode(&self.send(name, subresource, params, patch).await?)
    }

    /// Replaces a subresource.
    pub async fn replace_subresource<I: Serialize>(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        data: &I,
    ) -> Result<K> {
        decode(&self.put(name, subresource, params, Object::new(data)?).await?)
    }

    /// Reads the object, which includes its status.
    pub async fn get_status(&self, name: &str) -> Result<K> {
        self.get_subresource("status", name).await
    }

    /// Changes the status.
    pub async fn patch_status<P: Serialize + Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K> {
        self.patch_subresource("status", name, params, patch).await
    }

    /// Replaces the status.
    pub async fn replace_status(&self, name: &str, params: &PostParams, data: &K) -> Result<K>
    where
        K: Serialize,
    {
        self.replace_subresource("status", name, params, data).await
    }

    /// Reads the scale.
    pub async fn get_scale(&self, name: &str) -> Result<Scale> {
        decode(&self.fetch_subresource("scale", name).await?)
    }

    /// Changes the scale.
    pub async fn patch_scale<P: Serialize + Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Scale> {
        decode(&self.send(name, "scale", params, patch).await?)
    }

    /// Replaces the scale.
    pub async fn replace_scale(&self, name: &str, params: &PostParams, data: &Scale) -> Result<Scale> {
        decode(&self.put(name, "scale", params, Object::new(data)?).await?)
    }
}
