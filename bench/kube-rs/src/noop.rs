// SPDX-License-Identifier: Apache-2.0
//! Runs that read three fields, and change nothing but the labels of pods whose node's
//! name begins with `label-`.

use std::{hint::black_box, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    api::{Patch, PatchParams},
    runtime::controller::Action,
    Api, ResourceExt,
};
use serde_json::json;

use crate::{Context, Kind};

impl Kind for Pod {
    async fn reconcile(pod: Arc<Self>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
        black_box((pod.name_any(), pod.status.as_ref().and_then(|s| s.phase.as_deref())));
        ctx.runs.add();
        if node.starts_with("label-") && pod.labels().get("node").map(String::as_str) != Some(node) {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"node": node}}}));
            Api::<Self>::namespaced(ctx.client.clone(), &pod.namespace().unwrap_or_default())
                .patch(&pod.name_any(), &PatchParams::default(), &patch)
                .await?;
        }
        Ok(Action::await_change())
    }
}

impl Kind for ConfigMap {
    async fn reconcile(map: Arc<Self>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
        black_box((map.name_any(), map.labels().get("tier"), map.data.as_ref().and_then(|d| d.get("config.yaml"))));
        ctx.runs.add();
        Ok(Action::await_change())
    }
}
