// SPDX-License-Identifier: Apache-2.0
use crate::api_error::ApiError;
use crate::client;
use crate::guest::Guest;
use crate::imports;
use crate::list::{list, List, Pages};
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::params::ListParams;

/// Reads the objects that the host watches for this module, those of
/// [`Manifest`](crate::Manifest) `for_`, `owns` and `watches`, without a request to the
/// API server.
///
/// It needs the same rights as the client, get and list; it needs none for the kind of
/// `for_`. The cache may lag behind the cluster for a moment. It includes the writes of
/// the object's last run, unless [`Context::stale`](crate::Context::stale) returns true.
/// Objects have no `metadata.managedFields`. Objects of a `metadata_only` watch have only
/// apiVersion, kind and metadata.
///
/// An [`ApiError`] is `is_not_found` for a missing object, and `is_not_synced` if the
/// watch has not listed its objects yet. For a kind that is not watched, its status is
/// `BAD_REQUEST`, and the message names the missing declaration.
#[derive(Clone, Copy)]
pub struct Cache<'a> {
    guest: &'a Guest<'a>,
}

impl<'a> Cache<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>) -> Self {
        Cache { guest }
    }

    /// Reads one object.
    ///
    /// # Errors
    ///
    /// See [`Cache`].
    pub fn get(&self, at: &ObjectRef) -> Result<Object<'static>, ApiError> {
        client::object(self.guest, &imports::CACHE_GET, at, |_| {})
    }

    /// Reads one page of the objects of a kind, ordered by namespace and name. It lists
    /// the namespace of `at`, or all namespaces if `at` has none. It uses the parameters
    /// `label_selector`, `field_selector`, `owner`, `limit` (500 if 0) and
    /// `continue_token`, which stays valid when objects change.
    ///
    /// # Errors
    ///
    /// See [`Cache`].
    pub fn list(&self, at: &ObjectRef, params: &ListParams) -> Result<List, ApiError> {
        list(self.guest, &imports::CACHE_LIST, at, params)
    }

    /// Iterates over the objects that `list` returns, page by page. An error ends the
    /// iteration.
    pub fn all(&self, at: &ObjectRef, params: &ListParams) -> Pages<'a> {
        Pages::new(self.guest, &imports::CACHE_LIST, at.clone(), params.clone())
    }
}
