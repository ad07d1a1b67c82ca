// SPDX-License-Identifier: Apache-2.0
use crate::api_error::{status, ApiError};
use crate::client::object;
use crate::guest::Guest;
use crate::host::Op;
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::params::ListParams;
use crate::value::Elements;

/// Reads one page.
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
    /// Iterates over the objects, as views.
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

    /// The token of the next page for [`ListParams::continue_token`]; empty on the last
    /// page.
    pub fn continue_token(&self) -> &str {
        self.0.str(&["metadata", "continue"])
    }

    /// The version of the cluster state that the list shows.
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
            // The continue token fixes the version of all later pages.
            self.params.resource_version.clear();
            self.params.resource_version_match.clear();
        }
    }
}
