//! The client of the Kubernetes API.

use crate::error::Result;

/// Stands for the host's connection to the API server, with the rights of the module.
///
/// It holds nothing. A request works in a run of a controller, and is an error elsewhere,
/// in `main` too: the host asks a module what it watches before it has a cluster.
#[derive(Clone, Debug)]
pub struct Client(());

impl Client {
    /// The client.
    ///
    /// # Errors
    ///
    /// None: the signature is that of kube-rs.
    pub async fn try_default() -> Result<Self> {
        Ok(Client(()))
    }

    /// The namespace of [`Api::default_namespaced`](crate::Api::default_namespaced):
    /// `default`. A module has no kubeconfig and no namespace of its own.
    pub fn default_namespace(&self) -> &str {
        "default"
    }
}
