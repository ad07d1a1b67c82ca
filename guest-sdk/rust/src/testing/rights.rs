// SPDX-License-Identifier: Apache-2.0
use super::api::Request;
use super::fault::Fault;
use super::host::State;
use crate::api_error::{status, ApiError};
use crate::manifest::Capability;

fn verb(op: &str) -> &'static str {
    match op {
        "api_get" | "cache_get" => "get",
        "api_list" | "cache_list" => "list",
        "api_create" => "create",
        "api_update" => "update",
        "api_delete" => "delete",
        _ => "patch",
    }
}

impl State {
    /// Checks a request against the rights of every module and the manifest's
    /// capabilities.
    pub(super) fn allowed(&self, r: &Request) -> Result<(), Fault> {
        let mut need = Capability::new(&r.id.group, &self.plural(&r.at.kind), &[verb(r.op)]);
        need.subresources.extend(Some(r.sub.clone()).filter(|s| !s.is_empty()));
        if self.own_rights().iter().chain(&self.rules.capabilities).any(|c| allows(c, r, &need)) {
            return Ok(());
        }
        need.namespaces.extend(Some(r.at.namespace.clone()).filter(|n| !n.is_empty()));
        let what = [&[need.resource.clone()], &need.subresources[..]].concat().join("/");
        let message = format!("the manifest has no capability to {} {what}", need.verbs[0]);
        Err(ApiError { rule: Some(Box::new(need)), ..ApiError::new(status::DENIED, "Denied", message) })
    }

    /// The rights of every module: to read the objects that it reconciles and to write
    /// their status (abi/ABI.md, section 8).
    fn own_rights(&self) -> Vec<Capability> {
        let w = &self.rules.for_;
        if w.kind.is_empty() {
            return Vec::new();
        }
        let plural = self.plural(&w.kind);
        let read = Capability {
            namespaces: w.namespaces.clone(),
            ..Capability::new(&w.group, &plural, &["get", "list", "watch"])
        };
        let status = Capability {
            namespaces: w.namespaces.clone(),
            subresources: vec!["status".to_owned()],
            ..Capability::new(&w.group, &plural, &["get", "update", "patch"])
        };
        vec![read, status]
    }

    /// Guesses the plural of a kind.
    pub(super) fn plural(&self, kind: &str) -> String {
        if let Some(plural) = self.store.plurals.get(kind) {
            return plural.clone();
        }
        crate::plural::guess(kind)
    }
}

fn allows(c: &Capability, r: &Request, need: &Capability) -> bool {
    let within = |list: &[String], s: &str| list.is_empty() || list.iter().any(|e| e == s);
    let sub = if r.sub.is_empty() { c.subresources.is_empty() } else { c.subresources.contains(&r.sub) };
    c.group == need.group
        && c.resource == need.resource
        && c.verbs.iter().any(|v| v == "*" || *v == need.verbs[0])
        && sub
        && within(&c.namespaces, &r.at.namespace)
        && within(&c.names, &r.at.name)
}
