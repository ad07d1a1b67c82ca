use serde::ser::Serialize;

use crate::api_error::{status, ApiError};
use crate::guest::Guest;
use crate::host::Op;
use crate::imports;
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use crate::value::Elements;
use crate::wire::{self, CodecError, Message};

/// Calls the Kubernetes API through the host, within the capabilities of the
/// module's manifest. What it returns owns its bytes. [`Api`](crate::Api) is the same
/// for one type, as in kube-rs.
///
/// Every error is an [`ApiError`]: `is_not_found` and the others. An object that
/// cannot be sent is one of status `BAD_REQUEST`, and no call is made. A namespaced
/// object without a namespace is an error of the host: there is no default.
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

    /// Reads the objects of a kind in the namespace of `at`, or in all where it has
    /// none: one page of them where there is a limit.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn list(&self, at: &ObjectRef, params: &ListParams) -> Result<List, ApiError> {
        list(self.guest, &imports::API_LIST, at, params)
    }

    /// Walks the objects that `list` returns, page by page: `params.limit` at a time,
    /// 500 if it is not set. An error ends the walk; one of which `is_gone` is true
    /// means that it took too long, and is to start again.
    pub fn all(&self, at: &ObjectRef, params: &ListParams) -> Pages<'a> {
        let mut params = params.clone();
        if params.limit <= 0 {
            params.limit = 500; // some hundreds of kilobytes of objects of the usual size
        }
        Pages::new(self.guest, &imports::API_LIST, at.clone(), params)
    }

    /// Creates an object and returns it as stored.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn create<T: Serialize + ?Sized>(&self, obj: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.write(&imports::API_CREATE, &ObjectRef::default(), obj, params)
    }

    /// Replaces an object and returns it as stored. With a resourceVersion in its
    /// metadata it answers a conflict if somebody wrote since that was read. Most
    /// controllers want `apply` or `patch`.
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

    /// Makes the fields of `obj` what they are there, by server-side apply, and
    /// returns the object as stored.
    ///
    /// It creates an object that is missing, leaves alone the fields that `obj` does
    /// not have, and removes those that this manager applied before and are not there
    /// any more.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn apply<T: Serialize + ?Sized>(&self, obj: &T, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.write(&imports::API_APPLY, &ObjectRef::default(), obj, params)
    }

    /// `apply` of the status subresource. `obj` has apiVersion, kind, metadata with
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

    /// Changes an object and returns it as stored.
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

    /// Asks for an object to be deleted. Finalizers may hold it after that. An object
    /// that is gone already answers an error of which `is_not_found` is true.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn delete(&self, at: &ObjectRef, params: &DeleteParams) -> Result<(), ApiError> {
        object(self.guest, &imports::API_DELETE, at, |m| params.write(m)).map(drop)
    }

    /// The way to a subresource of an object: the scale of a Deployment, the eviction
    /// of a Pod. The right that it needs is a capability with `subresources`.
    pub fn subresource(&self, at: &ObjectRef, name: &str) -> Subresource<'a> {
        Subresource { client: *self, at: at.clone(), name: name.to_owned() }
    }

    /// Sends `obj`. `at` names it beside what it says itself, where it may be of
    /// another kind or does not name itself.
    pub(crate) fn write<T: Serialize + ?Sized>(
        &self,
        op: &Op,
        at: &ObjectRef,
        obj: &T,
        params: &PatchParams,
    ) -> Result<Object<'static>, ApiError> {
        let mut named = at.clone();
        write_request(self.guest, |dst| {
            let mut m = Message::new(dst);
            write_ref(&mut m, at);
            wire::append(m.key("object"), obj)?;
            params.write(&mut m);
            m.bool("force", params.force);
            Ok(())
        })
        .map_err(|e| ApiError::encode(op, at, &e))?;
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

/// Writes a request in the memory of the last one.
pub(crate) fn write_request(
    guest: &Guest<'_>,
    f: impl FnOnce(&mut Vec<u8>) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    let mut request = guest.request.borrow_mut();
    request.clear();
    f(&mut request)
}

pub(crate) fn write_ref(m: &mut Message<'_>, at: &ObjectRef) {
    m.str("apiVersion", &at.api_version);
    m.str("kind", &at.kind);
    m.str("namespace", &at.namespace);
    m.str("name", &at.name);
}

/// Carries out an operation that answers an object, and copies that.
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

pub(crate) fn list(guest: &Guest<'_>, op: &Op, at: &ObjectRef, params: &ListParams) -> Result<List, ApiError> {
    if !at.name.is_empty() {
        let message = "a list has no name; use get or a field selector";
        let e = ApiError::new(status::BAD_REQUEST, "BadRequest", message);
        return Err(ApiError { op: op.name, object: Box::new(at.clone()), ..e });
    }
    object(guest, op, at, |m| params.write(m)).map(List)
}

/// One page of objects.
#[derive(Clone, Debug, Default)]
pub struct List(Object<'static>);

impl List {
    /// Walks the objects, as views.
    pub fn items(&self) -> Items<'_> {
        Items(self.0.elements(&["items"]))
    }

    /// The number of objects in this page.
    pub fn len(&self) -> usize {
        self.0.len(&["items"])
    }

    /// Whether there is no object in this page.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list itself: apiVersion, kind, metadata and items.
    pub fn into_object(self) -> Object<'static> {
        self.0
    }

    /// What [`ListParams::continue_token`] takes to get the next page; empty on the
    /// last one.
    pub fn continue_token(&self) -> &str {
        self.0.str(&["metadata", "continue"])
    }

    /// The state of the cluster that the list shows.
    pub fn resource_version(&self) -> &str {
        self.0.str(&["metadata", "resourceVersion"])
    }
}

/// The objects of a page.
#[derive(Clone, Debug)]
pub struct Items<'a>(Elements<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Object<'a>;

    fn next(&mut self) -> Option<Object<'a>> {
        self.0.next().map(|v| Object::view(v.view))
    }
}

/// The objects of all pages.
pub struct Pages<'a> {
    guest: &'a Guest<'a>,
    op: &'static Op,
    at: ObjectRef,
    params: ListParams,
    page: std::vec::IntoIter<Object<'static>>,
    last: bool,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>, op: &'static Op, at: ObjectRef, params: ListParams) -> Self {
        Pages { guest, op, at, params, page: Vec::new().into_iter(), last: false }
    }
}

impl Iterator for Pages<'_> {
    type Item = Result<Object<'static>, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(obj) = self.page.next() {
                return Some(Ok(obj));
            }
            if self.last {
                return None;
            }
            let page = match list(self.guest, self.op, &self.at, &self.params) {
                Ok(page) => page,
                Err(e) => {
                    self.last = true;
                    return Some(Err(e));
                }
            };
            self.page = page.items().map(|o| o.to_owned()).collect::<Vec<_>>().into_iter();
            self.last = page.continue_token().is_empty();
            self.params.continue_token = page.continue_token().to_owned();
            // The first page says for all of them which state it is.
            self.params.resource_version.clear();
            self.params.resource_version_match.clear();
        }
    }
}

/// One subresource of one object; see [`Client::subresource`]. What is sent and
/// answered may be of another kind than the object.
pub struct Subresource<'a> {
    client: Client<'a>,
    at: ObjectRef,
    name: String,
}

impl Subresource<'_> {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn get(&self) -> Result<Object<'static>, ApiError> {
        self.client.get_with(&self.at, &GetParams { subresource: self.name.clone(), ..GetParams::default() })
    }

    /// Sends `body`, an Eviction or a TokenRequest for example, and returns the
    /// answer.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn create<T: Serialize + ?Sized>(&self, body: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_CREATE, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Replaces it and returns it as stored.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn update<T: Serialize + ?Sized>(&self, body: &T, params: &PostParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_UPDATE, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Makes the fields of `body` what they are there.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn apply<T: Serialize + ?Sized>(&self, body: &T, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.client.write(&imports::API_APPLY, &self.at, body, &params.of_subresource(&self.name))
    }

    /// Changes it and returns it as stored.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub fn patch<T: Serialize>(&self, patch: &Patch<T>, params: &PatchParams) -> Result<Object<'static>, ApiError> {
        self.client.patch(&self.at, patch, &params.of_subresource(&self.name))
    }
}
