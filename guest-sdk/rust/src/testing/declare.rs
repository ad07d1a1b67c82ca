// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::time::Duration;

use super::fault::{bad_request, Fault};
use super::host::State;
use super::json::{map, Json};
use super::store::Id;
use crate::api_error::status;
use crate::error::ErrorClass;
use crate::failure::{Failure, FailureKind};
use crate::guest::Entry;
use crate::time::Time;

/// The desired state that a result declares (abi/ABI.md, section 4).
pub(super) struct Declared {
    children: Vec<Json>,
    prune: bool,
    force: bool,
    status: Option<Json>,
}

impl Declared {
    pub(super) fn read(result: &Json) -> Self {
        Declared {
            children: result.at(&["apply"]).as_list().to_vec(),
            prune: result.bool(&["prune"]),
            force: result.bool(&["force"]),
            status: result.as_map().and_then(|m| m.get("status")).cloned(),
        }
    }

    pub(super) fn only_status(&self) -> bool {
        self.children.is_empty() && !self.prune && !self.force
    }
}

impl State {
    /// Carries out a declared result as a host does: it checks all children, applies them
    /// in their order, prunes the objects that are not listed, and applies the status. It
    /// stops at the first error, and does not undo earlier steps.
    pub(super) fn declare(&mut self, d: Declared) -> Option<Failure> {
        let owner = self.running.as_ref().and_then(|r| self.store.objects.get(&Id::of_ref(&r.object))).cloned()?;
        self.entered = Some(Entry::Reconcile);
        self.declare_of(&owner, d).err().map(|f| *f)
    }

    fn declare_of(&mut self, owner: &Json, d: Declared) -> Result<(), Box<Failure>> {
        let mut listed = BTreeSet::new();
        let mut children = Vec::new();
        for (i, child) in d.children.iter().enumerate() {
            let child = self.prepare(owner, child).and_then(|child| match listed.insert(Id::of(&child)) {
                true => Ok(child),
                false => Err(bad_request("it is in the list twice")),
            });
            children.push(child.map_err(|e| failed(&format!("child[{i}]: apply: "), &e, true))?);
        }
        for (i, child) in children.iter().enumerate() {
            let msg = map([("object", child.clone()), ("force", Json::Bool(d.force))]);
            self.operate("api_apply", msg).map_err(|e| self.apply_failed(owner, i, child, &e))?;
        }
        if d.prune {
            self.prune(owner, &listed)?;
        }
        match d.status {
            Some(status) => self.apply_status(owner, status, d.force),
            None => Ok(()),
        }
    }

    /// Checks a child and makes `owner` its controller.
    fn prepare(&self, owner: &Json, child: &Json) -> Result<Json, Fault> {
        let mut child = child.clone();
        let (kind, home) = (child.str(&["kind"]).to_owned(), owner.str(&["metadata", "namespace"]).to_owned());
        let namespace = child.str(&["metadata", "namespace"]).to_owned();
        let scoped = self.store.cluster_scoped.contains(&kind);
        let wrong = if child.as_map().is_none() {
            "it is not an object".to_owned()
        } else if [child.str(&["apiVersion"]), &kind, child.str(&["metadata", "name"])].contains(&"") {
            "apiVersion, kind and metadata.name are needed".to_owned()
        } else if scoped && !home.is_empty() {
            format!("{kind} is cluster-scoped, and an object with a namespace cannot own it")
        } else if !scoped && !home.is_empty() && !namespace.is_empty() && namespace != home {
            format!("metadata.namespace {namespace} is not the namespace of its owner; an owner reference cannot cross namespaces")
        } else if !scoped && home.is_empty() && namespace.is_empty() {
            "metadata.namespace is needed: its owner has no namespace".to_owned()
        } else if child.at(&["metadata", "generateName"]) != &Json::Null {
            "metadata.generateName: a child needs a fixed name".to_owned()
        } else {
            String::new()
        };
        if !wrong.is_empty() {
            return Err(bad_request(wrong));
        }
        if !scoped && !home.is_empty() {
            child.metadata().insert("namespace".into(), Json::Str(home));
        }
        if Id::of(&child) == Id::of(owner) {
            return Err(bad_request("it is the reconciled object itself"));
        }
        own(owner, &mut child)?;
        for op in ["api_apply", "api_create"] {
            // Server-side apply can create objects, too.
            self.allowed(&self.parse(op, map([("object", child.clone())]))?)?;
        }
        Ok(child)
    }

    /// Deletes the objects of owned kinds that `owner` controls and that the result does
    /// not list.
    fn prune(&mut self, owner: &Json, listed: &BTreeSet<Id>) -> Result<(), Box<Failure>> {
        let uid = owner.str(&["metadata", "uid"]);
        for w in self.rules.owns.clone() {
            for id in self.sorted(&w.group, &w.kind, "") {
                let obj = self.store.objects[&id].clone();
                let deleting = !obj.str(&["metadata", "deletionTimestamp"]).is_empty();
                if listed.contains(&id) || controller_uid(&obj) != uid || deleting {
                    continue;
                }
                let mut msg = map([
                    ("apiVersion", obj.at(&["apiVersion"]).clone()),
                    ("kind", Json::Str(id.kind.clone())),
                    ("name", Json::Str(id.name.clone())),
                    ("preconditions", map([("uid", obj.at(&["metadata", "uid"]).clone())])),
                ]);
                if !id.namespace.is_empty() {
                    *msg.entry("namespace") = Json::Str(id.namespace.clone());
                }
                match self.operate("api_delete", msg) {
                    Err(e) if !e.is_not_found() => {
                        return Err(failed(&format!("object[{} {}]: prune: ", id.kind, id.name), &e, false))
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn apply_status(&mut self, owner: &Json, status: Json, force: bool) -> Result<(), Box<Failure>> {
        let mut metadata = map([("name", owner.at(&["metadata", "name"]).clone())]);
        if !owner.str(&["metadata", "namespace"]).is_empty() {
            *metadata.entry("namespace") = owner.at(&["metadata", "namespace"]).clone();
        }
        let obj = map([
            ("apiVersion", owner.at(&["apiVersion"]).clone()),
            ("kind", owner.at(&["kind"]).clone()),
            ("metadata", metadata),
            ("status", status),
        ]);
        let msg = map([("object", obj), ("subresource", "status".into()), ("force", Json::Bool(force))]);
        let name = owner.str(&["metadata", "name"]);
        self.operate("api_apply", msg).map(drop).map_err(|e| failed(&format!("object[{name}]: status: "), &e, false))
    }

    /// Distinguishes an object that another object controls from an invalid object. The
    /// API server refuses both as invalid.
    fn apply_failed(&self, owner: &Json, i: usize, child: &Json, e: &Fault) -> Box<Failure> {
        let place = format!("child[{i} {} {}]: apply: ", child.str(&["kind"]), child.str(&["metadata", "name"]));
        let f = failed(&place, e, false);
        let there = self.store.objects.get(&Id::of(child)).map_or("", controller_uid);
        if e.status == 422 && !there.is_empty() && there != owner.str(&["metadata", "uid"]) {
            return Box::new(Failure { class: ErrorClass::Conflict, reason: "ForeignController".into(), ..*f });
        }
        if e.status == 409 {
            return Box::new(Failure { reason: "FieldConflict".into(), ..*f });
        }
        f
    }
}

/// Writes the owner reference of a child.
fn own(owner: &Json, child: &mut Json) -> Result<(), Fault> {
    let uid = owner.str(&["metadata", "uid"]);
    let others = child.at(&["metadata", "ownerReferences"]).as_list().iter();
    let mut refs: Vec<_> = others.filter(|r| r.str(&["uid"]) != uid).cloned().collect();
    if let Some(r) = refs.iter().find(|r| r.bool(&["controller"])) {
        let (kind, name) = (r.str(&["kind"]), r.str(&["name"]));
        let why = "cannot be its controller: the reconciled object is";
        return Err(bad_request(format!("metadata.ownerReferences: {kind} {name} {why}")));
    }
    refs.push(map([
        ("apiVersion", owner.at(&["apiVersion"]).clone()),
        ("kind", owner.at(&["kind"]).clone()),
        ("name", owner.at(&["metadata", "name"]).clone()),
        ("uid", uid.into()),
        ("controller", Json::Bool(true)),
        ("blockOwnerDeletion", Json::Bool(true)),
    ]));
    child.metadata().insert("ownerReferences".into(), Json::List(refs));
    Ok(())
}

/// The UID of the object's controller, or "".
fn controller_uid(obj: &Json) -> &str {
    let owners = obj.at(&["metadata", "ownerReferences"]).as_list();
    owners.iter().find(|r| r.bool(&["controller"])).map_or("", |r| r.str(&["uid"]))
}

/// Classifies an error of a declared result as a host does: it is permanent if only
/// another result or another manifest would help.
fn failed(place: &str, e: &Fault, invalid: bool) -> Box<Failure> {
    let (class, reason) = match e.status {
        409 => (ErrorClass::Conflict, e.reason.as_str()),
        status::DENIED => (ErrorClass::Permanent, e.reason.as_str()),
        _ if invalid => (ErrorClass::Permanent, "InvalidChild"),
        _ => (ErrorClass::Transient, e.reason.as_str()),
    };
    Box::new(Failure {
        kind: FailureKind::Error,
        class,
        message: format!("{place}{}", e.message),
        reason: reason.to_owned(),
        after: Duration::ZERO,
        attempt: 0,
        first_failed: Time::default(),
    })
}
