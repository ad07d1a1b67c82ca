// SPDX-License-Identifier: Apache-2.0
//! Maintains a ConfigMap for each ConfigMapGenerator, with the API of kube-rs. Everything except
//! the last line and the capabilities would be the same in a program based on kube-rs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Capability, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

/// The content of a ConfigMap.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.wasmctl.dev", version = "v1", kind = "ConfigMapGenerator", namespaced)]
#[kube(status = "ConfigMapGeneratorStatus", shortname = "cmg")]
pub struct ConfigMapGeneratorSpec {
    /// The value of the key "content" in the ConfigMap.
    pub content: String,
}

/// The state that the controller has observed.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapGeneratorStatus {
    /// The generation from which the ConfigMap was made.
    pub observed_generation: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to apply the ConfigMap: {0}")]
    Apply(#[source] kube::Error),
    #[error("failed to write the status: {0}")]
    Status(#[source] kube::Error),
    #[error("the generator has no {0}")]
    Missing(&'static str),
}

/// The state shared by all runs.
pub struct Data {
    client: Client,
}

const MANAGER: &str = "configmapgenerator";

/// Applies the ConfigMap that the generator requests.
pub async fn reconcile(generator: Arc<ConfigMapGenerator>, ctx: Arc<Data>) -> Result<Action, Error> {
    let namespace = generator.namespace().ok_or(Error::Missing("namespace"))?;
    let owner = generator.controller_owner_ref(&()).ok_or(Error::Missing("uid"))?;
    if generator.meta().deletion_timestamp.is_some() {
        return Ok(Action::await_change()); // the garbage collector deletes the ConfigMap
    }
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(generator.name_any()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("content".to_owned(), generator.spec.content.clone())])),
        ..ConfigMap::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &namespace);
    let params = PatchParams::apply(MANAGER).force();
    maps.patch(&generator.name_any(), &params, &Patch::Apply(&map)).await.map_err(Error::Apply)?;
    info!(name = generator.name_any(), "applied the ConfigMap");
    write_status(&generator, &namespace, &ctx.client).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

/// Writes the status if it contains something new, because each write causes another run.
async fn write_status(generator: &ConfigMapGenerator, namespace: &str, client: &Client) -> Result<(), Error> {
    let generation = generator.metadata.generation;
    if generator.status.as_ref().is_some_and(|s| s.observed_generation == generation) {
        return Ok(());
    }
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), namespace);
    let status = serde_json::json!({"status": ConfigMapGeneratorStatus { observed_generation: generation }});
    let params = PatchParams::apply(MANAGER);
    generators.patch_status(&generator.name_any(), &params, &Patch::Merge(&status)).await.map_err(Error::Status)?;
    Ok(())
}

/// Retries after a fixed time.
pub fn error_policy(generator: Arc<ConfigMapGenerator>, error: &Error, _: Arc<Data>) -> Action {
    warn!(name = generator.name_any(), %error, "will try again");
    Action::requeue(Duration::from_secs(5))
}

pub async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    let generators = Api::<ConfigMapGenerator>::all(client.clone());
    let maps = Api::<ConfigMap>::all(client.clone());
    Controller::new(generators, watcher::Config::default())
        .owns(maps, watcher::Config::default())
        .capability(Capability::new("", "configmaps", &["create", "patch"]))
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Data { client }))
        .for_each(|result| async move {
            match result {
                Ok((generator, _)) => info!("reconciled {generator}"),
                Err(error) => warn!("not reconciled: {error}"),
            }
        })
        .await;
    Ok(())
}

kube::main!(main);
