// SPDX-License-Identifier: Apache-2.0
//! Publishes each Document as a ConfigMap in a namespace of its choice, with the API of kube-rs. A
//! finalizer deletes the ConfigMap, because an owner reference cannot refer to another namespace,
//! and events report what happened. Webhooks fill in the namespace, and refuse a Document that
//! could not be published.

mod admission;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{finalizer, Event as Finalizer};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::webhook;
use kube::{Capability, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

pub const FINALIZER: &str = "examples.wasmctl.dev/published";
const MANAGER: &str = "documents";
const OF: &str = "examples.wasmctl.dev/document";

/// A text and the namespace where it is published.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.wasmctl.dev", version = "v1", kind = "Document", namespaced)]
#[kube(status = "DocumentStatus", shortname = "doc")]
#[serde(rename_all = "camelCase")]
pub struct DocumentSpec {
    /// The text.
    pub text: String,
    /// The namespace of the ConfigMap.
    pub publish_in: String,
    /// Whether the document is hidden.
    #[serde(default)]
    pub hidden: bool,
}

impl DocumentSpec {
    fn is_forbidden(&self) -> bool {
        self.text.contains("forbidden")
    }
}

/// The state that the controller has reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DocumentStatus {
    /// Whether the ConfigMap exists.
    pub published: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("kube: {0}")]
    Kube(#[from] kube::Error),
    // The box breaks a cycle: the finalizer's error contains an error of this type.
    #[error("finalizer: {0}")]
    Finalizer(#[source] Box<kube::runtime::finalizer::Error<Error>>),
    #[error("document[{0}]: the text is forbidden")]
    Forbidden(String),
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// The state shared by all runs.
pub struct Context {
    client: Client,
    recorder: Recorder,
}

pub async fn reconcile(doc: Arc<Document>, ctx: Arc<Context>) -> Result<Action> {
    let docs: Api<Document> = Api::namespaced(ctx.client.clone(), &doc.namespace().unwrap_or_default());
    finalizer(&docs, FINALIZER, doc, |event| async {
        match event {
            Finalizer::Apply(doc) => doc.apply(&ctx).await,
            Finalizer::Cleanup(doc) => doc.cleanup(&ctx).await,
        }
    })
    .await
    .map_err(|e| Error::Finalizer(Box::new(e)))
}

pub fn error_policy(doc: Arc<Document>, error: &Error, _: Arc<Context>) -> Action {
    warn!(name = doc.name_any(), %error, "not reconciled");
    match error {
        Error::Finalizer(e) if matches!(**e, kube::runtime::finalizer::Error::ApplyFailed(Error::Forbidden(_))) => {
            Action::await_change() // the user must change it
        }
        _ => Action::requeue(Duration::from_secs(5)),
    }
}

impl Document {
    /// Returns the name of the ConfigMap: two namespaces may have documents of the same name.
    fn published_name(&self) -> String {
        format!("{}.{}", self.namespace().unwrap_or_default(), self.name_any())
    }

    async fn apply(&self, ctx: &Context) -> Result<Action> {
        if self.spec.is_forbidden() {
            self.report(ctx, EventType::Warning, "Forbidden", "the text is forbidden").await?;
            return Err(Error::Forbidden(self.name_any()));
        }
        if self.spec.hidden {
            self.withdraw(ctx).await?;
        } else {
            self.publish(ctx).await?;
        }
        let published = !self.spec.hidden;
        let old = self.status.clone().unwrap_or_default();
        if self.status.is_none() || old.published != published {
            let docs: Api<Document> = Api::namespaced(ctx.client.clone(), &self.namespace().unwrap_or_default());
            let patch = Patch::Apply(serde_json::json!({
                "apiVersion": Document::api_version(&()),
                "kind": Document::kind(&()),
                "status": DocumentStatus { published },
            }));
            docs.patch_status(&self.name_any(), &PatchParams::apply(MANAGER).force(), &patch).await?;
            let reason = if published { "Published" } else { "Hidden" };
            self.report(ctx, EventType::Normal, reason, &format!("as {}", self.published_name())).await?;
        }
        Ok(Action::requeue(Duration::from_secs(300)))
    }

    async fn publish(&self, ctx: &Context) -> Result<()> {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.published_name()),
                labels: Some(BTreeMap::from([(OF.to_owned(), self.name_any())])),
                annotations: Some(BTreeMap::from([(OF.to_owned(), self.namespace().unwrap_or_default())])),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("text".to_owned(), self.spec.text.clone())])),
            ..ConfigMap::default()
        };
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &self.spec.publish_in);
        maps.patch(&self.published_name(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(&map)).await?;
        Ok(())
    }

    /// Deletes the ConfigMap if it exists.
    async fn withdraw(&self, ctx: &Context) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &self.spec.publish_in);
        match maps.delete(&self.published_name(), &DeleteParams::default()).await {
            Err(kube::Error::Api(e)) if e.code == 404 => Ok(()),
            other => other.map(|_| ()).map_err(Error::Kube),
        }
    }

    async fn cleanup(&self, ctx: &Context) -> Result<Action> {
        self.withdraw(ctx).await?;
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &self.spec.publish_in);
        let left = maps.list(&ListParams::default().labels(&format!("{OF}={}", self.name_any()))).await?;
        self.report(ctx, EventType::Normal, "Withdrawn", &format!("{} of this name are left", left.items.len()))
            .await?;
        Ok(Action::await_change())
    }

    async fn report(&self, ctx: &Context, type_: EventType, reason: &str, note: &str) -> Result<()> {
        let event = Event {
            type_,
            reason: reason.into(),
            note: Some(note.into()),
            action: "Publishing".into(),
            secondary: None,
        };
        Ok(ctx.recorder.publish(&event, &self.object_ref(&())).await?)
    }
}

/// Returns the document of a ConfigMap that was changed.
fn document_of(map: ConfigMap) -> Option<ObjectRef<Document>> {
    Some(ObjectRef::new(map.labels().get(OF)?).within(map.annotations().get(OF)?))
}

pub async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
    let docs = Api::<Document>::all(client.clone());
    let maps = Api::<ConfigMap>::all(client.clone());
    Controller::new(docs, watcher::Config::default())
        .watches(maps, watcher::Config::default().labels(OF), document_of)
        .with_config(Config::default().concurrency(2))
        .capability(Capability::new("", "configmaps", &["list", "create", "patch", "delete"]))
        .capability(Capability::new("events.k8s.io", "events", &["create", "patch"]))
        .capability(Capability {
            fields: vec!["metadata.finalizers".into()],
            ..Capability::new("examples.wasmctl.dev", "documents", &["patch"])
        })
        .webhook(webhook::mutate(admission::default))
        .webhook(webhook::validate(admission::validate))
        .run(reconcile, error_policy, Arc::new(Context { client, recorder }))
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}

kube::main!(main);
