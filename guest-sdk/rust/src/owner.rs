// SPDX-License-Identifier: Apache-2.0
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::Error;
use crate::object::Object;
use crate::value::Value;

/// An owner of an object, in its `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// The group and version of the owner.
    pub api_version: String,
    /// The kind of the owner.
    pub kind: String,
    /// The name of the owner, in the namespace of the object if it has one.
    pub name: String,
    /// The UID of the owner.
    pub uid: String,
    /// Whether this owner controls the object. An object has at most one controller.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits until the object is gone.
    pub block_owner_deletion: bool,
}

impl OwnerReference {
    pub(crate) fn read(v: Value<'_>) -> Self {
        OwnerReference {
            api_version: v.str(&["apiVersion"]).to_owned(),
            kind: v.str(&["kind"]).to_owned(),
            name: v.str(&["name"]).to_owned(),
            uid: v.str(&["uid"]).to_owned(),
            controller: v.bool(&["controller"]),
            block_owner_deletion: v.bool(&["blockOwnerDeletion"]),
        }
    }
}

impl Serialize for OwnerReference {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("apiVersion", &self.api_version)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("uid", &self.uid)?;
        for (key, value) in [("controller", self.controller), ("blockOwnerDeletion", self.block_owner_deletion)] {
            if value {
                map.serialize_entry(key, &value)?;
            }
        }
        map.end()
    }
}

const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];

impl Object<'_> {
    /// The reference that makes this object the controlling owner of another object. Then
    /// the garbage collector deletes that object with this one, and a change of that
    /// object reconciles this one.
    pub fn controller_ref(&self) -> OwnerReference {
        OwnerReference { controller: true, block_owner_deletion: true, ..self.owner_ref() }
    }

    /// The reference that makes this object one of several owners. Only the garbage
    /// collector uses it.
    pub fn owner_ref(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            ..OwnerReference::default()
        }
    }

    /// The owners of this object.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.elements(&OWNERS).map(OwnerReference::read).collect()
    }

    /// The owner that controls this object.
    pub fn controller(&self) -> Option<OwnerReference> {
        self.owner_references().into_iter().find(|r| r.controller)
    }

    /// Whether `owner` is the controlling owner. The UID decides: an owner that was
    /// deleted and created again is a different owner.
    pub fn is_controlled_by(&self, owner: &Object<'_>) -> bool {
        self.controller().map_or(false, |c| c.uid == owner.uid())
    }

    /// Makes `owner` the controlling owner; see [`controller_ref`](Self::controller_ref).
    ///
    /// # Errors
    ///
    /// The error is permanent, and the object does not change, in two cases. Another
    /// object controls it (reason `NotOwned`), or `owner` has a namespace that the object
    /// is not in (reason `CrossNamespaceOwner`). In the second case, the garbage
    /// collector would delete the object at once.
    pub fn set_controller(&mut self, owner: &Object<'_>) -> Result<(), Error> {
        match self.controller() {
            Some(c) if c.uid != owner.uid() => {
                let msg = format!("{}: is controlled by {} {}", self.to_ref(), c.kind, c.name);
                Err(Error::msg(msg).permanent().with_reason("NotOwned"))
            }
            _ => self.insert_owner(owner, owner.controller_ref()),
        }
    }

    /// Makes `owner` one of several owners; see [`owner_ref`](Self::owner_ref).
    ///
    /// # Errors
    ///
    /// An owner in another namespace, as in [`set_controller`](Self::set_controller).
    pub fn set_owner(&mut self, owner: &Object<'_>) -> Result<(), Error> {
        self.insert_owner(owner, owner.owner_ref())
    }

    fn insert_owner(&mut self, owner: &Object<'_>, reference: OwnerReference) -> Result<(), Error> {
        if !owner.namespace().is_empty() && owner.namespace() != self.namespace() {
            let msg =
                format!("{}: cannot be owned by {}, which is not in its namespace", self.to_ref(), owner.to_ref());
            return Err(Error::msg(msg).permanent().with_reason("CrossNamespaceOwner"));
        }
        let mut owners = self.owner_references();
        match owners.iter_mut().find(|r| r.uid == reference.uid) {
            Some(r) => *r = reference,
            None => owners.push(reference),
        }
        self.set(&OWNERS, &owners)?;
        Ok(())
    }
}
