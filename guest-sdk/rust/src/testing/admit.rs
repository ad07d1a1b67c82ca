// SPDX-License-Identifier: Apache-2.0
//! Webhooks and conversions.

use std::collections::BTreeMap;

use super::host::{Host, State};
use super::json::{map, Json, Map};
use super::run::key;
use super::store::{ref_of, Id};
use crate::guest::Entry;
use crate::object::Object;
use crate::reconciler::Reconciler;
use crate::verdict::{Cause, Denial};
use crate::webhook::Webhook;

/// The outcome of a request that webhooks have judged.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    /// The first denial, unless the request is allowed.
    pub denied: Option<Denial>,
    /// The object as the API server would store it; it does not exist for a deletion.
    pub object: Object<'static>,
    /// The warnings of all webhooks.
    pub warnings: Vec<String>,
    /// The annotations for the audit log.
    pub audit: BTreeMap<String, String>,
}

impl Host {
    /// Sends a request through the webhooks whose rules select it, as the API server does
    /// before it stores the object: first those that default, then those that validate. An
    /// object that does not exist stands for the state before a creation or after a
    /// deletion. The cluster does not change.
    ///
    /// The host ignores selectors, match conditions and subresources. Its user is that of
    /// [`set_user`](Self::set_user).
    ///
    /// # Errors
    ///
    /// The text of the error of a webhook that could not decide.
    ///
    /// # Panics
    ///
    /// If a webhook changes the object again when it receives its own result: the API
    /// server may call it twice.
    #[track_caller]
    pub fn admit(&self, r: &Reconciler, old: &Object<'_>, new: &Object<'_>) -> Result<Admitted, String> {
        self.load(r);
        let (old, mut object) = (Json::read(old.value()), Json::read(new.value()));
        let mut out = Admitted::default();
        for entry in [Entry::Default, Entry::Validate] {
            for w in r.manifest.webhooks.iter().filter(|w| w.entry() == entry) {
                let verdict = match self.judge(r, w, &old, &object)? {
                    Some(verdict) => verdict,
                    None => continue,
                };
                let changed = patched(&object, &verdict);
                if changed != object {
                    let again = self.judge(r, w, &old, &changed)?.unwrap_or(Json::Null);
                    let twice = patched(&changed, &again);
                    assert_eq!(twice, changed, "testing: {w:?}: is not idempotent: it changes its own result");
                    object = changed;
                }
                out.add(&verdict);
                if out.denied.is_some() {
                    return Ok(out);
                }
            }
        }
        if object != Json::Null {
            out.object = object.to_object();
        }
        Ok(out)
    }

    /// Converts an object to another apiVersion, for example `example.com/v2`.
    ///
    /// # Errors
    ///
    /// The text of the error of the conversion.
    ///
    /// # Panics
    ///
    /// If the result has another version, kind, name or namespace: the API server would
    /// refuse it.
    #[track_caller]
    pub fn convert(&self, r: &Reconciler, obj: &Object<'_>, to: &str) -> Result<Object<'static>, String> {
        self.load(r);
        let objects = Json::List(vec![Json::read(obj.value())]);
        let request = self.state.borrow().message([("to", to.into()), ("objects", objects)]);
        let out = self.answer(r, Entry::Convert, &request)?;
        let objects = out.at(&["objects"]).as_list();
        assert_eq!(objects.len(), 1, "testing: convert: the number of objects");
        let object = objects[0].to_object();
        let want = obj.key().to_ref(to, obj.kind());
        assert_eq!(object.to_ref(), want, "testing: convert: the API server would refuse the result");
        Ok(object)
    }

    /// Sets the user of the requests of [`admit`](Self::admit).
    pub fn set_user(&self, username: &str, groups: &[&str]) {
        let groups = groups.iter().map(|g| Json::from(*g)).collect();
        self.state.borrow_mut().user = map([("username", username.into()), ("groups", Json::List(groups))]);
    }

    /// Calls a webhook, if its rules select the request.
    #[track_caller]
    fn judge(&self, r: &Reconciler, w: &Webhook, old: &Json, new: &Json) -> Result<Option<Json>, String> {
        let request = match self.state.borrow().admission(w, old, new) {
            Some(request) => request,
            None => return Ok(None),
        };
        let verdict = self.answer(r, w.entry(), &request)?;
        let change = *verdict.at(&["object"]) != Json::Null;
        let may = w.entry() == Entry::Default && *new != Json::Null && *verdict.at(&["denied"]) == Json::Null;
        assert!(!change || may, "testing: {w:?}: this verdict must not have an object");
        Ok(Some(verdict))
    }
}

impl Admitted {
    fn add(&mut self, verdict: &Json) {
        let denied = verdict.at(&["denied"]);
        if *denied != Json::Null {
            self.denied = Some(denial(denied));
        }
        let texts = verdict.at(&["warnings"]).as_list().iter();
        self.warnings.extend(texts.map(|w| w.str(&[]).to_owned()));
        let audit = verdict.at(&["audit"]).as_map().into_iter().flatten();
        self.audit.extend(audit.map(|(k, v)| (k.clone(), v.str(&[]).to_owned())));
    }
}

fn denial(d: &Json) -> Denial {
    let text = |v: &Json, key: &str| v.str(&[key]).to_owned();
    let cause = |c: &Json| Cause { type_: text(c, "type"), field: text(c, "field"), message: text(c, "message") };
    Denial {
        code: match d.at(&["code"]) {
            Json::Int(code) if (400..600).contains(code) => *code as u16,
            Json::Null => 403,
            other => panic!("testing: verdict: code {other:?} is not between 400 and 599"),
        },
        reason: text(d, "reason"),
        message: text(d, "message"),
        causes: d.at(&["causes"]).as_list().iter().map(cause).collect(),
    }
}

impl State {
    /// The Admission of a request for a webhook; `None` if no rule selects the request.
    fn admission(&self, w: &Webhook, old: &Json, new: &Json) -> Option<Json> {
        let there = if *new == Json::Null { old } else { new };
        let operation = match (old, new) {
            (Json::Null, _) => "CREATE",
            (_, Json::Null) => "DELETE",
            _ => "UPDATE",
        };
        let id = Id::of(there);
        let version = there.str(&["apiVersion"]).rsplit('/').next().unwrap_or_default();
        let resource = self.plural(&id.kind);
        if !w.selects(&id.group, version, &resource, operation) {
            return None;
        }
        let target = map([
            ("group", id.group.as_str().into()),
            ("version", version.into()),
            ("kind", id.kind.as_str().into()),
            ("resource", resource.as_str().into()),
        ]);
        let mut m = self.message([
            ("webhook", w.url_path().into()),
            ("operation", operation.into()),
            ("target", target.clone()),
            ("requested", target),
            ("key", key(&ref_of(there))),
            ("user", self.user.clone()),
            ("dry_run", Json::Bool(self.dry_run)),
        ]);
        for (name, state) in [("old", old), ("object", new)] {
            if *state != Json::Null {
                *m.entry(name) = state.clone();
            }
        }
        Some(m)
    }
}

/// The object of a request with the change of a verdict. The identity of the object stays.
fn patched(object: &Json, verdict: &Json) -> Json {
    let after = verdict.at(&["object"]);
    if *after == Json::Null {
        return object.clone();
    }
    let before = verdict.as_map().and_then(|m| m.get("base")).unwrap_or(object);
    let mut out = merged(object, before, after);
    for key in ["apiVersion", "kind"] {
        *out.entry(key) = object.at(&[key]).clone();
    }
    for key in ["name", "namespace", "uid"] {
        match object.at(&["metadata", key]) {
            Json::Null => drop(out.metadata().remove(key)),
            v => drop(out.metadata().insert(key.into(), v.clone())),
        }
    }
    out
}

/// Applies the difference between `before` and `after` to `object`.
fn merged(object: &Json, before: &Json, after: &Json) -> Json {
    match (object, before, after) {
        _ if before == after => object.clone(),
        (Json::Map(o), Json::Map(b), Json::Map(a)) => {
            let mut out: Map = o.iter().filter(|(k, _)| a.contains_key(*k) || !b.contains_key(*k)).map(own).collect();
            for (k, v) in a.iter().filter(|(k, v)| b.get(*k) != Some(*v)) {
                let (from, with) = (o.get(k).unwrap_or(&Json::Null), b.get(k).unwrap_or(&Json::Null));
                out.insert(k.clone(), merged(from, with, v));
            }
            Json::Map(out)
        }
        (Json::List(o), Json::List(b), Json::List(a)) if o.len() == b.len() && b.len() == a.len() => {
            Json::List(o.iter().zip(b).zip(a).map(|((o, b), a)| merged(o, b, a)).collect())
        }
        _ => after.clone(),
    }
}

fn own((k, v): (&String, &Json)) -> (String, Json) {
    (k.clone(), v.clone())
}
