// SPDX-License-Identifier: Apache-2.0
//! The API of kube-rs for controllers that run as sandboxed WebAssembly modules in a
//! wasmctl host. One line of Cargo.toml replaces the crate `kube`:
//!
//! ```toml
//! kube = { package = "wasmctl-kube", path = "...", features = ["runtime", "derive"] }
//! ```
//!
//! The types come from the crate kube-core, the derive macros from kube-derive. Client,
//! runtime and executor are those of the host. This is a complete module:
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::api::{Api, Patch, PatchParams, ResourceExt};
//! use kube::runtime::controller::{Action, Controller};
//! use kube::runtime::watcher;
//! use kube::{Capability, Client, Error};
//!
//! async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Error> {
//!     let maps: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), &map.namespace().unwrap_or_default());
//!     let seen = serde_json::json!({"metadata": {"labels": {"seen": "yes"}}});
//!     maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(seen)).await?;
//!     Ok(Action::await_change())
//! }
//!
//! async fn controller() -> Result<(), Error> {
//!     let client = Client::try_default().await?;
//!     Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
//!         .owns(Api::<Secret>::all(client.clone()), watcher::Config::default())
//!         .capability(Capability::new("", "configmaps", &["patch"]))
//!         .run(reconcile, |_, _, _| Action::await_change(), Arc::new(client))
//!         .for_each(|_| futures::future::ready(()))
//!         .await;
//!     Ok(())
//! }
//!
//! kube::main!(controller);
//! ```
//!
//! A module has one thread, and no timers or sockets. The host answers the futures of an
//! [`Api`]; a future that waits for anything else fails the run. The feature `testing`
//! adds [`testing`], which runs a controller in a plain `cargo test`.
#![deny(missing_docs, unsafe_code)]
#![warn(rust_2018_idioms)]

pub mod api;
pub mod client;
pub mod discovery;
pub mod error;
mod executor;
mod logger;
mod module;
mod params;
pub mod prelude;
pub mod runtime;
#[cfg(feature = "testing")]
pub mod testing;
pub mod webhook;

#[doc(inline)]
pub use api::Api;
pub use client::Client;
pub use error::{Error, Result};
pub use kube_core as core;
pub use kube_core::{CustomResourceExt, Resource, ResourceExt};
#[cfg(feature = "derive")]
pub use kube_derive::{CustomResource, KubeSchema, Resource};
pub use module::{controllers, module, Outcome};
pub use wasmctl::Capability;

#[doc(hidden)]
pub mod __private {
    pub use crate::module::module_of as module;
    pub use wasmctl;
}
