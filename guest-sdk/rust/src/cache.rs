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
/// The rights that it needs are those of the client, get and list; none for the kind
/// of `for_`. It may lag behind the cluster for a moment; the writes of the object's
/// last run are in it, unless [`Context::stale`](crate::Context::stale) says otherwise.
/// Objects have no `metadata.managedFields`, and nothing but metadata where the watch
/// is `metadata_only`.
///
/// An [`ApiError`] is `is_not_found`; `is_not_synced` where the watch has not listed its
/// objects yet; and of status `BAD_REQUEST` for a kind that is not watched, with a
/// message that says what to declare.
#[derive(Clone, Copy)]
pub struct Cache<'a> {
    guest: &'a Guest<'a>,
}

impl<'a> Cache<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>) -> Self {
        Cache { guest }
    }

    /// One object.
    ///
    /// # Errors
    ///
    /// See [`Cache`].
    pub fn get(&self, at: &ObjectRef) -> Result<Object<'static>, ApiError> {
        client::object(self.guest, &imports::CACHE_GET, at, |_| {})
    }

    /// One page of the objects of a kind in the namespace of `at`, or in all where it
    /// has none, ordered by namespace and name. Of the parameters it reads
    /// `label_selector`, `limit` (500 if 0) and `continue_token`, which stays good
    /// whatever changes.
    ///
    /// # Errors
    ///
    /// See [`Cache`].
    pub fn list(&self, at: &ObjectRef, params: &ListParams) -> Result<List, ApiError> {
        list(self.guest, &imports::CACHE_LIST, at, params)
    }

    /// Walks the objects that `list` returns, page by page. An error ends the walk.
    pub fn all(&self, at: &ObjectRef, params: &ListParams) -> Pages<'a> {
        Pages::new(self.guest, &imports::CACHE_LIST, at.clone(), params.clone())
    }
}
