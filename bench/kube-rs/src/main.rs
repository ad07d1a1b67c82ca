// SPDX-License-Identifier: Apache-2.0
//! Controllers on kube-rs, which wasmctl is measured against (make bench-peers). They are
//! built as its users build them, by `Controller` with its defaults, but for the bound of
//! four objects at a time that all contenders have.
//!
//! It writes the line that the harness reads from wasmctl's log as well, when the caches
//! have synced, and counts reconciles where it is asked to by HTTP. SIGUSR1 asks for all
//! objects.

mod generator;
mod metrics;
mod noop;

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use futures::{future::join_all, stream, StreamExt};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    NamespaceResourceScope,
};
use kube::{
    config::{Config, KubeConfigOptions, Kubeconfig},
    runtime::{
        controller::{self, Action},
        watcher, Controller,
    },
    Api, Client, Resource,
};
use serde::de::DeserializeOwned;
use tokio::signal::unix::{signal, SignalKind};

use generator::ConfigMapGenerator;

/// What all controllers have.
pub struct Context {
    pub client: Client,
    pub runs: metrics::Runs,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A kind whose objects can be reconciled here.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
    /// Adds the children's watch, where there are children.
    fn owning(controller: Controller<Self>, _: &Client, _: &str) -> Controller<Self> {
        controller
    }
    /// What a run does.
    fn reconcile(object: Arc<Self>, ctx: Arc<Context>) -> impl Future<Output = Result<Action, kube::Error>> + Send;
}

/// Runs so many controllers of a kind, each with its own watches, until SIGTERM.
async fn run<K: Kind>(ctx: Arc<Context>, namespace: &str, count: usize) -> Result<(), Failure> {
    let all: Vec<_> = (0..count).map(|_| new::<K>(&ctx, namespace)).collect::<Result<_, _>>()?;
    let stores: Vec<_> = all.iter().map(Controller::store).collect();
    let controllers = join_all(all.into_iter().map(|c| {
        c.run(K::reconcile, |_, _, _| Action::requeue(Duration::from_secs(60)), ctx.clone())
            .for_each(|_| async {})
    }));
    let synced = async {
        for store in stores {
            if store.wait_until_ready().await.is_err() {
                return; // it stops
            }
        }
        eprintln!(r#"{{"msg":"watches have synced"}}"#);
    };
    tokio::join!(controllers, synced);
    Ok(())
}

fn new<K: Kind>(ctx: &Context, namespace: &str) -> Result<Controller<K>, Failure> {
    let resync = stream::unfold(signal(SignalKind::user_defined1())?, |mut s| async {
        s.recv().await.map(|()| ((), s))
    });
    let c = Controller::new(Api::namespaced(ctx.client.clone(), namespace), watcher::Config::default());
    Ok(K::owning(c, &ctx.client, namespace)
        .with_config(controller::Config::default().concurrency(4))
        .reconcile_all_on(resync)
        .shutdown_on_signal())
}

/// The value of a flag: --name value.
fn flag(name: &str, default: &str) -> String {
    let args: Vec<String> = std::env::args().collect();
    args.iter().position(|a| *a == format!("--{name}")).and_then(|i| args.get(i + 1)).map_or(default, |v| v).into()
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::read_from(flag("kubeconfig", ""))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let ctx = Arc::new(Context { client: Client::try_from(config)?, runs: metrics::Runs::default() });
    metrics::serve(ctx.runs.clone(), &flag("metrics-address", "127.0.0.1:0")).await?;
    let (namespace, count) = (flag("namespace", "default"), flag("controllers", "1").parse()?);
    match flag("for", "").as_str() {
        "pods" => run::<Pod>(ctx, &namespace, count).await,
        "configmaps" => run::<ConfigMap>(ctx, &namespace, count).await,
        "configmapgenerators" => run::<ConfigMapGenerator>(ctx, &namespace, count).await,
        other => Err(format!("--for {other:?}: it is pods, configmaps or configmapgenerators").into()),
    }
}
