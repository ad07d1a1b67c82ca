// SPDX-License-Identifier: Apache-2.0
use super::api::Request;
use super::fault::{api_fault, bad_request, not_served, Fault};
use super::host::State;
use super::json::Json;
use super::store::Id;

impl State {
    pub(super) fn patch(&mut self, r: &Request) -> Result<Json, Fault> {
        let old = self.stored(r)?;
        let change = r.msg.at(&["patch"]);
        let obj = match (r.msg.str(&["patchType"]), change) {
            ("merge", Json::Map(_)) => merge(&old, change),
            ("merge", _) => return Err(bad_request("a merge patch is a map")),
            ("json", Json::List(ops)) => json_patch(&old, ops)?,
            ("json", _) => return Err(bad_request("a json patch is an array")),
            ("strategic", _) => return Err(not_served("strategic patches")),
            (kind, _) => return Err(bad_request(format!("patchType {kind} is not json, merge or strategic"))),
        };
        if obj.as_map().is_none() || Id::of(&obj) != r.id {
            let message = "a patch must not change the kind or the name of an object";
            return Err(api_fault(400, "BadRequest", message));
        }
        self.overwrite(r, &old, obj)
    }
}

/// Applies a merge patch (RFC 7386).
fn merge(into: &Json, patch: &Json) -> Json {
    let changes = match patch {
        Json::Map(changes) => changes,
        _ => return patch.clone(),
    };
    let mut m = into.as_map().cloned().unwrap_or_default();
    for (key, v) in changes {
        if *v == Json::Null {
            m.remove(key);
        } else {
            let merged = merge(m.get(key).unwrap_or(&Json::Null), v);
            m.insert(key.clone(), merged);
        }
    }
    Json::Map(m)
}

/// Applies a JSON patch (RFC 6902).
fn json_patch(doc: &Json, ops: &[Json]) -> Result<Json, Fault> {
    let mut doc = doc.clone();
    for (i, op) in ops.iter().enumerate() {
        json_patch_op(&mut doc, op).ok_or_else(|| {
            let what = format!("operation {i} ({} {}) does not apply", op.str(&["op"]), op.str(&["path"]));
            api_fault(422, "Invalid", format!("the server rejected our request due to an error in our request: {what}"))
        })?;
    }
    Ok(doc)
}

fn json_patch_op(doc: &mut Json, op: &Json) -> Option<()> {
    let path = pointer(op.str(&["path"]))?;
    let value = op.at(&["value"]).clone();
    match op.str(&["op"]) {
        "test" => tests(doc, &path, &value).then_some(()),
        "add" => add(doc, &path, value),
        "replace" => {
            *lookup(doc, &path)? = value;
            Some(())
        }
        "remove" => take(doc, &path).map(drop),
        "copy" => {
            let value = lookup(doc, &pointer(op.str(&["from"]))?)?.clone();
            add(doc, &path, value)
        }
        "move" => {
            let value = take(doc, &pointer(op.str(&["from"]))?)?;
            add(doc, &path, value)
        }
        _ => None,
    }
}

/// Splits a JSON pointer (RFC 6901).
fn pointer(s: &str) -> Option<Vec<String>> {
    if s.is_empty() {
        return Some(Vec::new());
    }
    let steps = s.strip_prefix('/')?.split('/');
    Some(steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn index(step: &str, len: usize) -> Option<usize> {
    let i: usize = step.parse().ok()?;
    (i < len && i.to_string() == step).then_some(i)
}

fn lookup<'a>(doc: &'a mut Json, path: &[String]) -> Option<&'a mut Json> {
    path.iter().try_fold(doc, |v, step| match v {
        Json::Map(m) => m.get_mut(step),
        Json::List(l) => {
            let i = index(step, l.len())?;
            l.get_mut(i)
        }
        _ => None,
    })
}

/// Whether the document has the value at the path. As in the API server, a missing key of
/// a map counts as null.
fn tests(doc: &mut Json, path: &[String], value: &Json) -> bool {
    let (last, parents) = match path.split_last() {
        None => return doc == value,
        Some(split) => split,
    };
    match lookup(doc, parents) {
        Some(Json::Map(m)) => m.get(last).unwrap_or(&Json::Null) == value,
        _ => lookup(doc, path).map_or(false, |v| v == value),
    }
}

fn add(doc: &mut Json, path: &[String], value: Json) -> Option<()> {
    let (last, parents) = match path.split_last() {
        None => {
            *doc = value;
            return Some(());
        }
        Some(split) => split,
    };
    match lookup(doc, parents)? {
        Json::Map(m) => drop(m.insert(last.clone(), value)),
        Json::List(l) if last == "-" => l.push(value),
        Json::List(l) => l.insert(index(last, l.len() + 1)?, value),
        _ => return None,
    }
    Some(())
}

fn take(doc: &mut Json, path: &[String]) -> Option<Json> {
    let (last, parents) = path.split_last()?;
    match lookup(doc, parents)? {
        Json::Map(m) => m.remove(last),
        Json::List(l) => {
            let i = index(last, l.len())?;
            Some(l.remove(i))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(v: &crate::Builder) -> Json {
        Json::read(crate::Object::new(v).unwrap().value())
    }

    #[test]
    fn json_patches_apply_as_rfc_6902_has_it() {
        let doc = json(&crate::json!({"a": [1, 2], "b": {"c/d": 1}}));
        for (ops, want) in [
            (
                crate::json!([{"op": "add", "path": "/a/1", "value": 9}]),
                Some(crate::json!({"a": [1, 9, 2], "b": {"c/d": 1}})),
            ),
            (
                crate::json!([{"op": "add", "path": "/a/-", "value": 9}]),
                Some(crate::json!({"a": [1, 2, 9], "b": {"c/d": 1}})),
            ),
            (crate::json!([{"op": "remove", "path": "/b/c~1d"}]), Some(crate::json!({"a": [1, 2], "b": {}}))),
            (
                crate::json!([{"op": "move", "from": "/a/0", "path": "/x"}]),
                Some(crate::json!({"a": [2], "b": {"c/d": 1}, "x": 1})),
            ),
            (
                crate::json!([{"op": "test", "path": "/a/0", "value": 1}, {"op": "replace", "path": "/a", "value": 3}]),
                Some(crate::json!({"a": 3, "b": {"c/d": 1}})),
            ),
            (crate::json!([{"op": "test", "path": "/a/0", "value": 2}]), None),
            (
                crate::json!([{"op": "test", "path": "/x", "value": null}, {"op": "remove", "path": "/b"}]),
                Some(crate::json!({"a": [1, 2]})),
            ),
            (crate::json!([{"op": "test", "path": "/a", "value": null}]), None),
            (crate::json!([{"op": "test", "path": "/x/y", "value": null}]), None),
            (crate::json!([{"op": "remove", "path": "/a/2"}]), None),
            (crate::json!([{"op": "replace", "path": "/x", "value": 2}]), None),
            (crate::json!([{"op": "add", "path": "/a/01", "value": 2}]), None),
        ] {
            let ops = json(&ops_of(ops));
            assert_eq!(json_patch(&doc, ops.at(&["ops"]).as_list()).ok(), want.map(|w| json(&w)), "{ops:?}");
        }
    }

    fn ops_of(ops: crate::Builder) -> crate::Builder {
        crate::json!({"ops": ops})
    }
}
