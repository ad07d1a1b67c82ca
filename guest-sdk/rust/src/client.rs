// SPDX-License-Identifier: Apache-2.0
use serde::ser::Serialize;

use crate::api_error::ApiError;
use crate::guest::Guest;
use crate::host::Op;
use crate::imports;
use crate::list::{list, List, Pages};
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use crate::wire::{self, Message};

/// Calls the Kubernetes API through the host, within the capabilities of the module's
/// manifest. Its results own their bytes. [`Api`](crate::Api) is the same for one type,
/// as in kube-rs.
///
/// Every error is an [`ApiError`]; see its methods, for example `is_not_found`. If an
/// object cannot be encoded, the status is `BAD_REQUEST` and the client makes no call. A
/// namespaced object needs a namespace. There is no default namespace: the host returns
/// an error.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    guest: &'a Guest<'a>,
}

impl<'a> Client<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>) -> Self {
        Client { guest }
    }

    /// Reads an object from the API server.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn get(&self, at: &ObjectRef) -> Result<Object<'static>, ApiError> {
        self.get_with(at, &GetParams::default())
    }

    /// Reads an object, or a subresource of it.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn get_with(&self, at: &ObjectRef, params: &GetParams) -> Result<Object<'static>, ApiError> {
        object(self.guest, &imports::API_GET, at, |m| params.write(m))
    }

    /// Reads the objects of a kind in the namespace of `at`, or in all namespaces if `at`
    /// has none. If a limit is set, it reads one page.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn list(&self, at: &ObjectRef, params: &ListParams) -> Result<List, ApiError> {
        list(self.guest, &imports::API_LIST, at, params)
    }

    /// Iterates over the objects that `list` returns, page by page, with `params.limit`
    /// objects in each page (500 if it is not set). An error ends the iteration. If
    /// `is_gone` is true for the error, the iteration took too long and must start again.
    pub fn all(&self, at: &ObjectRef, params: &ListParams) -> Pages<'a> {
        let mut params = params.clone();
        if params.limit <= 0 {
            params.limit = 500; // a page of some hundred kilobytes for objects of usual size
        }
        Pages::new(self.guest, &imports::API_LIST, at.clone(), params)
    }

    /// Creates an object and returns the stored object.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn create<T: Serialize + ?Sized>(&self, obj: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.write(&imports::API_CREATE, &ObjectRef::default(), obj, params)
    }

    /// Replaces an object and returns the stored object. If the metadata has a
    /// resourceVersion and the object has changed since that version, the answer is a
    /// conflict. Most controllers should use `apply` or `patch`.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn update<T: Serialize + ?Sized>(&self, obj: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.write(&imports::API_UPDATE, &ObjectRef::default(), obj, params)
    }

    /// `update` of the status subresource.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn update_status<T: Serialize + ?Sized>(
        &self,
        obj: &T,
        params: &PostParams,
    ) -> Result<Object<'static>, ApiError> {
        self.update(obj, &params.of_subresource("status"))
    }

    /// Applies the fields of `obj` by server-side apply, and returns the stored object.
    ///
    /// It creates a missing object. It does not change fields that `obj` does not have,
    /// except that it removes fields that this manager applied before and that `obj` no
    /// longer has.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn apply<T: Serialize + ?Sized>(&self, obj: &T, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.write(&imports::API_APPLY, &ObjectRef::default(), obj, params)
    }

    /// `apply` of the status subresource. `obj` must have apiVersion, kind, metadata with
    /// name and namespace, and status.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn apply_status<T: Serialize + ?Sized>(
        &self,
        obj: &T,
        params: &PatchParams,
    ) -> Result<Object<'static>, ApiError> {
        self.apply(obj, &params.of_subresource("status"))
    }

    /// Changes an object and returns the stored object.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn patch<T: Serialize>(
        &self,
        at: &ObjectRef,
        patch: &Patch<T>,
        params: &PatchParams,
    ) -> Result<Object<'static>, ApiError> {
        if let Patch::Apply(obj) = patch {
            return self.write(&imports::API_APPLY, at, obj, params);
        }
        let op = &imports::API_PATCH;
        let body = crate::action::encode(patch).map_err(|e| ApiError::encode(op, at, &e))?;
        object(self.guest, op, at, |m| {
            m.text("patchType", patch.kind());
            m.key("patch").extend_from_slice(&body);
            params.write(m);
        })
    }

    /// `patch` of the status subresource.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn patch_status<T: Serialize>(
        &self,
        at: &ObjectRef,
        patch: &Patch<T>,
        params: &PatchParams,
    ) -> Result<Object<'static>, ApiError> {
        self.patch(at, patch, &params.of_subresource("status"))
    }

    /// Deletes an object. Its finalizers may delay that. If the object does not exist,
    /// `is_not_found` is true for the error.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn delete(&self, at: &ObjectRef, params: &DeleteParams) -> Result<(), ApiError> {
        object(self.guest, &imports::API_DELETE, at, |m| params.write(m)).map(drop)
    }

    /// A client of a subresource of an object, for example the scale of a Deployment or
    /// the eviction of a Pod. It needs a capability with `subresources`.
    pub fn subresource(&self, at: &ObjectRef, name: &str) -> Subresource<'a> {
        Subresource { client: *self, at: at.clone(), name: name.to_owned() }
    }

    /// Sends `obj`. `at` names the object if `obj` is of another kind or does not name
    /// it.
    pub(crate) fn write<T: Serialize + ?Sized>(
        &self,
        op: &Op,
        at: &ObjectRef,
        obj: &T,
        params: &PatchParams,
    ) -> Result<Object<'static>, ApiError> {
        let mut named = at.clone();
        {
            let mut request = self.guest.request.borrow_mut();
            request.clear();
            let mut m = Message::new(&mut request);
            write_ref(&mut m, at);
            wire::append(m.key("object"), obj).map_err(|e| ApiError::encode(op, at, &e))?;
            params.write(&mut m);
            m.bool("force", params.force);
        }
        if at.name.is_empty() {
            let request = self.guest.request.borrow();
            named = Object::view(wire::get(&request, "object")).to_ref();
        }
        self.guest.perform(op, owned).map_err(|e| ApiError { object: Box::new(named), ..e })
    }
}

fn owned(body: &[u8]) -> Object<'static> {
    Object::view(body).to_owned()
}

pub(crate) fn write_ref(m: &mut Message<'_>, at: &ObjectRef) {
    m.str("apiVersion", &at.api_version);
    m.str("kind", &at.kind);
    m.str("namespace", &at.namespace);
    m.str("name", &at.name);
}

/// Runs an operation that answers an object, and copies the object.
pub(crate) fn object(
    guest: &Guest<'_>,
    op: &Op,
    at: &ObjectRef,
    f: impl FnOnce(&mut Message<'_>),
) -> Result<Object<'static>, ApiError> {
    {
        let mut request = guest.request.borrow_mut();
        request.clear();
        let mut m = Message::new(&mut request);
        write_ref(&mut m, at);
        f(&mut m);
    }
    guest.perform(op, owned).map_err(|e| ApiError { object: Box::new(at.clone()), ..e })
}

/// One subresource of one object; see [`Client::subresource`]. The request and the answer
/// may be of another kind than the object.
pub struct Subresource<'a> {
    client: Client<'a>,
    at: ObjectRef,
    name: String,
}

impl Subresource<'_> {
    /// Reads the subresource.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn get(&self) -> Result<Object<'static>, ApiError> {
        self.client.get_with(&self.at, &GetParams { subresource: self.name.clone(), ..GetParams::default() })
    }

    /// Sends `body`, for example an Eviction or a TokenRequest, and returns the answer.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn create<T: Serialize + ?Sized>(&self, body: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_CREATE, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Replaces the subresource and returns the stored one.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn update<T: Serialize + ?Sized>(&self, body: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_UPDATE, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Applies the fields of `body` by server-side apply.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn apply<T: Serialize + ?Sized>(&self, body: &T, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_APPLY, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Changes the subresource and returns the stored one.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn patch<T: Serialize>(&self, patch: &Patch<T>, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.client.patch(&self.at, patch, &params.of_subresource(&self.name))
    }
}
