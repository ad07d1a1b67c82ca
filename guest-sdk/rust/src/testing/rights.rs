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
        guess(kind)
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

/// Guesses the resource of a kind by those rules of kubebuilder that names of kinds need.
fn guess(kind: &str) -> String {
    let s = kind.to_lowercase();
    for (end, plural) in PLURALS {
        if let Some(stem) = s.strip_suffix(end) {
            return format!("{stem}{plural}");
        }
    }
    s + "s"
}

/// Endings and their plurals; the first that matches is used. guest-sdk/go has the same table.
#[rustfmt::skip]
const PLURALS: &[(&str, &str)] = &[
    ("person", "people"), ("child", "children"), ("mouse", "mice"), ("human", "humans"),
    ("woman", "women"), ("index", "indices"), ("vertex", "vertices"), ("vortex", "vortices"),
    ("trix", "trices"), ("criterion", "criteria"), ("fish", "fish"), ("data", "data"),
    ("media", "media"), ("information", "information"), ("equipment", "equipment"),
    ("chassis", "chassis"), ("sis", "ses"), ("us", "uses"), ("ss", "sses"), ("s", "s"),
    ("ch", "ches"), ("sh", "shes"), ("x", "xes"), ("iz", "izzes"), ("zz", "zzes"), ("ay", "ays"),
    ("ey", "eys"), ("oy", "oys"), ("quy", "quies"), ("uy", "uys"), ("y", "ies"), ("ano", "anos"),
    ("io", "ios"), ("lo", "los"), ("oo", "oos"), ("to", "tos"), ("o", "oes"), ("lf", "lves"),
    ("eaf", "eaves"), ("fe", "ves"), ("atum", "ata"), ("ium", "ia"),
];

#[cfg(test)]
mod tests {
    /// The host checks the same table with the library of kubebuilder.
    #[test]
    fn guess_agrees_with_the_host() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/kubeapi/kinds/testdata/plurals.txt");
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let (kind, want) = line.split_once(' ').unwrap();
            assert_eq!(super::guess(kind), want, "{kind}");
        }
    }
}
