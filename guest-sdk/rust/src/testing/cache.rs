// SPDX-License-Identifier: Apache-2.0
use super::api::Request;
use super::fault::{api_fault, bad_request, Fault};
use super::host::State;
use super::json::{map, Json};
use super::rules::Watched;
use super::selector::selects;
use super::store::Id;
use crate::api_error::{status, ApiError};

impl State {
    /// The ids of the objects of a kind, in one namespace or in all, sorted.
    pub(super) fn sorted(&self, group: &str, kind: &str, namespace: &str) -> Vec<Id> {
        let of = |id: &&Id| id.group == group && id.kind == kind && (namespace.is_empty() || id.namespace == namespace);
        self.store.objects.keys().filter(of).cloned().collect()
    }

    pub(super) fn api_list(&self, r: &Request) -> Result<Json, Fault> {
        if !r.msg.str(&["fieldSelector"]).is_empty() {
            return Err(super::fault::not_served("field selectors"));
        }
        self.page(r, 0, |obj| Some(obj.clone()))
    }

    pub(super) fn cache_get(&self, r: &Request) -> Result<Json, Fault> {
        let watches = self.watching(r)?;
        let obj = self.stored(r)?;
        seen(&watches, &obj).ok_or_else(|| self.not_found(r))
    }

    pub(super) fn cache_list(&self, r: &Request) -> Result<Json, Fault> {
        let watches = self.watching(r)?;
        self.page(r, 500, |obj| seen(&watches, obj))
    }

    /// The watches of the kind.
    fn watching(&self, r: &Request) -> Result<Vec<&Watched>, Fault> {
        let watches: Vec<_> = self.rules.all().filter(|w| w.is(&r.id)).collect();
        if watches.is_empty() {
            let kind = &r.at.kind;
            return Err(bad_request(format!(
                "{kind} is not watched: it is in none of for, owns and watches of the manifest"
            )));
        }
        if self.not_synced.contains(&r.at.kind) {
            return Err(ApiError::new(
                status::NOT_SYNCED,
                "NotSynced",
                format!("{} has not been listed yet", r.at.kind),
            ));
        }
        Ok(watches)
    }

    /// One page of a list, without the objects for which `see` returns `None`.
    fn page(&self, r: &Request, limit: usize, see: impl Fn(&Json) -> Option<Json>) -> Result<Json, Fault> {
        let selector = r.msg.str(&["labelSelector"]);
        let limit = match r.msg.at(&["limit"]) {
            Json::Int(n) if *n > 0 => *n as usize,
            _ if limit > 0 => limit,
            _ => usize::MAX,
        };
        let after = r.msg.str(&["continue"]);
        let (mut items, mut next) = (Vec::new(), String::new());
        for id in self.sorted(&r.id.group, &r.id.kind, &r.at.namespace) {
            let at = format!("{}/{}", id.namespace, id.name);
            let obj = match see(&self.store.objects[&id]) {
                Some(obj) if after.is_empty() || at.as_str() > after => obj,
                _ => continue,
            };
            if !selects(selector, &obj)
                .ok_or_else(|| api_fault(400, "BadRequest", format!("label selector {selector}")))?
            {
                continue;
            }
            if !has_owner(r.msg.str(&["owner"]), &obj) || !has_fields(r.msg.str(&["fieldSelector"]), &obj) {
                continue;
            }
            if items.len() == limit {
                next = last_of(&items);
                break;
            }
            items.push(obj);
        }
        let mut metadata = map([("resourceVersion", Json::Str(self.store.version.to_string()))]);
        if !next.is_empty() {
            *metadata.entry("continue") = Json::Str(next);
        }
        Ok(map([
            ("apiVersion", r.at.api_version.as_str().into()),
            ("kind", Json::Str(format!("{}List", r.at.kind))),
            ("metadata", metadata),
            ("items", Json::List(items)),
        ]))
    }
}

fn has_owner(uid: &str, obj: &Json) -> bool {
    match obj.at(&["metadata", "ownerReferences"]) {
        _ if uid.is_empty() => true,
        Json::List(owners) => owners.iter().any(|o| o.str(&["uid"]) == uid),
        _ => false,
    }
}

/// Terms `path=value`, `path==value` and `path!=value`, joined by commas.
fn has_fields(selector: &str, obj: &Json) -> bool {
    selector.split(',').filter(|t| !t.is_empty()).all(|term| {
        let (path, want) = term.split_once('=').unwrap_or((term, ""));
        let (path, not) = path.strip_suffix('!').map_or((path, false), |p| (p, true));
        let path: Vec<&str> = path.split('.').collect();
        let have = match obj.at(&path) {
            Json::Str(s) => s.clone(),
            Json::Int(n) => n.to_string(),
            Json::Bool(b) => b.to_string(),
            _ => String::new(),
        };
        (have == want.strip_prefix('=').unwrap_or(want)) != not
    })
}

fn last_of(items: &[Json]) -> String {
    items
        .last()
        .map_or_else(String::new, |o| format!("{}/{}", o.str(&["metadata", "namespace"]), o.str(&["metadata", "name"])))
}

/// The object in its form in the cache, if a watch covers it.
fn seen(watches: &[&Watched], obj: &Json) -> Option<Json> {
    let mut covering = watches.iter().filter(|w| w.covers(obj)).peekable();
    covering.peek()?;
    let mut obj = obj.clone();
    if covering.all(|w| w.metadata_only) {
        obj.map_mut().retain(|k, _| matches!(k.as_str(), "apiVersion" | "kind" | "metadata"));
    }
    obj.metadata().remove("managedFields");
    Some(obj)
}
