// SPDX-License-Identifier: Apache-2.0
//! The client of the Kubernetes API.

use crate::error::Result;

/// Represents the host's connection to the API server, with the rights of the module.
///
/// It holds no state. A request works only in a run of a controller, and not in `main`,
/// because the host asks a module for its watches before it has a cluster.
#[derive(Clone, Debug)]
pub struct Client(());

impl Client {
    /// Returns a client.
    ///
    /// # Errors
    ///
    /// It returns no errors; the signature is that of kube-rs.
    pub async fn try_default() -> Result<Self> {
        Ok(Client(()))
    }

    /// The namespace of [`Api::default_namespaced`](crate::Api::default_namespaced):
    /// `default`. A module has no kubeconfig and no namespace of its own.
    pub fn default_namespace(&self) -> &str {
        "default"
    }
}
