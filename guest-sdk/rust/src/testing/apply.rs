// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use super::api::Request;
use super::fault::{api_fault, Fault};
use super::host::State;
use super::json::{Json, Map};

/// A path to a leaf. A step is a key of a map, or key=value for an element of a keyed
/// list.
type Path = Vec<String>;

/// The fields that a manager applied.
pub(super) type FieldSet = std::collections::BTreeSet<Path>;

/// The key by which the elements of a list are merged. All other lists are one value.
fn list_key(name: &str, list: &[Json]) -> Option<&'static str> {
    let key = match name {
        "ownerReferences" => "uid",
        "conditions" => "type",
        "containers" | "initContainers" | "env" | "volumes" | "ports" | "imagePullSecrets" => "name",
        "volumeMounts" => "mountPath",
        _ => return None,
    };
    list.iter().all(|e| !e.str(&[key]).is_empty()).then_some(key)
}

/// Collects the leaves of `v`.
fn fields(v: &Json, path: &Path, into: &mut FieldSet) {
    let step = |step: String| path.iter().cloned().chain([step]).collect::<Path>();
    match v {
        Json::Map(m) if !m.is_empty() => m.iter().for_each(|(k, e)| fields(e, &step(k.clone()), into)),
        Json::List(l) => match path.last().and_then(|name| list_key(name, l)) {
            Some(key) => l.iter().for_each(|e| fields(e, &step(format!("{key}={}", e.str(&[key]))), into)),
            None => drop(into.insert(path.clone())),
        },
        _ => drop(into.insert(path.clone())),
    }
}

/// The fields of an applied object that its manager owns: all except those that identify
/// the object.
fn mine(obj: &Json, sub: &str) -> FieldSet {
    const SET_BY_OTHERS: [&str; 8] = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
    ];
    let mut set = FieldSet::new();
    for (key, v) in obj.as_map().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            _ if (key == "status") != (sub == "status") => {}
            "metadata" => {
                for (k, v) in v.as_map().into_iter().flatten().filter(|(k, _)| !SET_BY_OTHERS.contains(&k.as_str())) {
                    fields(v, &vec![key.clone(), k.clone()], &mut set);
                }
            }
            _ => fields(v, &vec![key.clone()], &mut set),
        }
    }
    set
}

impl State {
    pub(super) fn apply(&mut self, r: &Request) -> Result<Json, Fault> {
        if r.object.at(&["metadata", "managedFields"]) != &Json::Null {
            return Err(api_fault(400, "BadRequest", "metadata.managedFields must be nil"));
        }
        let mut manager = match r.msg.str(&["fieldManager"]) {
            "" => format!("wasmctl/{}", self.rules.name),
            said => said.to_owned(),
        };
        if !r.sub.is_empty() {
            manager = format!("{manager} {}", r.sub); // a manager has a separate set for each subresource
        }
        let set = mine(&r.object, &r.sub);
        match self.store.objects.get(&r.id).cloned() {
            Some(old) => self.apply_over(r, manager, set, &old),
            None if !r.sub.is_empty() => Err(self.not_found(r)),
            None => {
                let body = self.insert(r, r.object.clone())?;
                self.own(r, manager, set);
                Ok(body)
            }
        }
    }

    /// Applies to an existing object.
    fn apply_over(&mut self, r: &Request, manager: String, set: FieldSet, old: &Json) -> Result<Json, Fault> {
        let applied = self.store.applied.get(&r.id).cloned().unwrap_or_default();
        let taken = conflicts(&applied, &manager, &set, |path| find(old, path) != find(&r.object, path));
        if !taken.is_empty() && !r.msg.bool(&["force"]) {
            let list: Vec<_> = taken.iter().map(|(other, path)| format!(".{} of {other}", path.join("."))).collect();
            return Err(api_fault(409, "Conflict", format!("Apply failed with conflicts: {}", list.join(", "))));
        }
        let mut obj = old.clone();
        let mut left: Vec<_> = applied.get(&manager).into_iter().flatten().filter(|p| !set.contains(*p)).collect();
        left.retain(|p| !applied.iter().any(|(other, theirs)| *other != manager && theirs.contains(*p)));
        // Remove the key of a list element last: the other fields are found by it.
        left.sort_by_key(|p| is_key(p));
        for path in left {
            remove(&mut obj, path);
        }
        merge_apply(obj.map_mut(), r.object.as_map().unwrap_or(&Map::new()));
        let body = self.overwrite(r, old, obj)?;
        if !self.is_dry(r) {
            for (other, path) in &taken {
                // With force, only this manager owns them now.
                if let Some(theirs) = self.store.applied.get_mut(&r.id).and_then(|a| a.get_mut(other)) {
                    theirs.remove(path);
                }
            }
        }
        self.own(r, manager, set);
        Ok(body)
    }

    /// Records the fields that a manager applied.
    fn own(&mut self, r: &Request, manager: String, set: FieldSet) {
        if !self.is_dry(r) && self.store.objects.contains_key(&r.id) {
            self.store.applied.entry(r.id.clone()).or_default().insert(manager, set);
        }
    }
}

/// The fields of `set` that another manager applied and whose values would change.
fn conflicts(
    applied: &BTreeMap<String, FieldSet>,
    manager: &str,
    set: &FieldSet,
    changes: impl Fn(&Path) -> bool,
) -> Vec<(String, Path)> {
    let others = applied.iter().filter(|(other, _)| *other != manager);
    let both =
        others.flat_map(|(other, theirs)| theirs.intersection(set).map(move |path| (other.clone(), path.clone())));
    both.filter(|(_, path)| changes(path)).collect()
}

fn is_key(path: &Path) -> bool {
    match path.as_slice() {
        [.., element, last] => element.starts_with(&format!("{last}=")),
        _ => false,
    }
}

/// The index of the element that matches a step key=value.
fn element(list: &[Json], step: &str) -> Option<usize> {
    let (key, value) = step.split_once('=')?;
    list.iter().position(|e| e.str(&[key]) == value)
}

/// The value at the path.
fn find<'a>(v: &'a Json, path: &Path) -> Option<&'a Json> {
    path.iter().try_fold(v, |v, step| match v {
        Json::Map(m) => m.get(step),
        Json::List(l) => l.get(element(l, step)?),
        _ => None,
    })
}

/// Removes the leaf at the path, and also maps and elements that become empty. Returns
/// whether `v` is empty.
fn remove(v: &mut Json, path: &[String]) -> bool {
    match v {
        Json::Map(m) => {
            let empty = match path {
                [step] => m.contains_key(step),
                [step, rest @ ..] => m.get_mut(step).map_or(false, |inner| remove(inner, rest)),
                [] => false,
            };
            if empty {
                m.remove(&path[0]);
            }
            m.is_empty()
        }
        Json::List(l) => {
            if let Some(i) = element(l, &path[0]) {
                if path.len() == 1 || remove(&mut l[i], &path[1..]) {
                    l.remove(i);
                }
            }
            l.is_empty()
        }
        _ => false,
    }
}

/// Merges the fields of `applied` into `obj`.
fn merge_apply(obj: &mut Map, applied: &Map) {
    for (key, v) in applied {
        let there = obj.entry(key.clone()).or_insert(Json::Null);
        match v {
            Json::Map(inner) => merge_apply(there.map_mut(), inner),
            Json::List(list) => merge_list(there, key, list),
            _ => *there = v.clone(),
        }
    }
}

fn merge_list(there: &mut Json, name: &str, applied: &[Json]) {
    let key = match list_key(name, applied) {
        Some(key) if !applied.is_empty() => key,
        _ => {
            *there = Json::List(applied.to_vec());
            return;
        }
    };
    let mut merged = there.as_list().to_vec();
    for e in applied {
        match (element(&merged, &format!("{key}={}", e.str(&[key]))), e.as_map()) {
            (Some(i), Some(fields)) => merge_apply(merged[i].map_mut(), fields),
            _ => merged.push(e.clone()),
        }
    }
    *there = Json::List(merged);
}
