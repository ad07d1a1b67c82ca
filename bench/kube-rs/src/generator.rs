// SPDX-License-Identifier: Apache-2.0
//! The example configmapgenerator: it does what examples/configmapgenerator does, request
//! for request.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::{
    api::{ObjectMeta, Patch, PatchParams},
    runtime::{controller::Action, watcher, Controller},
    Api, Client, CustomResource, Resource, ResourceExt,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Context, Kind};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "examples.wasmctl.dev", version = "v1", kind = "ConfigMapGenerator", namespaced, status = "Status")]
pub struct Spec {
    content: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    observed_generation: Option<i64>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl Kind for ConfigMapGenerator {
    fn owning(controller: Controller<Self>, client: &Client, namespace: &str) -> Controller<Self> {
        controller.owns(Api::<ConfigMap>::namespaced(client.clone(), namespace), watcher::Config::default())
    }

    async fn reconcile(generator: Arc<Self>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
        ctx.runs.add();
        if generator.meta().deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let (name, namespace) = (generator.name_any(), generator.namespace().unwrap_or_default());
        let child = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: generator.controller_owner_ref(&()).map(|o| vec![o]),
                ..ObjectMeta::default()
            },
            data: Some([("content".to_string(), generator.spec.content.clone())].into()),
            ..ConfigMap::default()
        };
        let params = PatchParams::apply("kube-rs").force();
        Api::<ConfigMap>::namespaced(ctx.client.clone(), &namespace).patch(&name, &params, &Patch::Apply(&child)).await?;
        if generator.status.as_ref().and_then(|s| s.observed_generation) != generator.meta().generation {
            write_status(&generator, &ctx, &params, &name, &namespace).await?;
        }
        Ok(Action::requeue(Duration::from_secs(300)))
    }
}

async fn write_status(
    generator: &ConfigMapGenerator,
    ctx: &Context,
    params: &PatchParams,
    name: &str,
    namespace: &str,
) -> Result<(), kube::Error> {
    let status = json!({
        "apiVersion": ConfigMapGenerator::api_version(&()),
        "kind": ConfigMapGenerator::kind(&()),
        "status": {
            "observedGeneration": generator.meta().generation,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Applied", "message": "the ConfigMap is up to date",
                "observedGeneration": generator.meta().generation, "lastTransitionTime": Timestamp::now(),
            }],
        },
    });
    Api::<ConfigMapGenerator>::namespaced(ctx.client.clone(), namespace)
        .patch_status(name, params, &Patch::Apply(&status))
        .await
        .map(|_| ())
}
