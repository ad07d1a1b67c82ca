// SPDX-License-Identifier: Apache-2.0
use wasmctl::{
    json, Admission, AdmissionTarget, Cause, Context, Denial, Error, Object, Value, Verdict,
    Webhook, WebhookRule,
};

use crate::ops::Report;
use crate::steps::steps;
use crate::{failure, tell, GROUP};

pub fn webhooks() -> Vec<Webhook> {
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let cases = WebhookRule {
        versions: owned(&["v1", "v2"]),
        resources: owned(&["cases", "cases/status"]),
        scope: "Namespaced".into(),
        ..WebhookRule::new(GROUP, "", "", &["CREATE", "UPDATE", "DELETE"])
    };
    vec![
        Webhook::validate(|a: &Admission, ctx: &Context| judge("validate", a, ctx))
            .path("/validate")
            .name("validate.conformance.wasmctl.dev")
            .rule(cases)
            .failure_policy("Ignore")
            .match_policy("Exact")
            .timeout_seconds(5)
            .namespace_selector("team in (a, b)")
            .object_selector("!legacy")
            .match_condition("named", "object.metadata.name != ''"),
        Webhook::default(|a: &Admission, ctx: &Context| judge("default", a, ctx))
            .path("/mutate")
            .rule(WebhookRule::new("*", "*", "cases", &["*"]))
            .reinvocation_policy("IfNeeded"),
    ]
}

/// Does what spec.validate or spec.default asks for.
fn judge(entry: &str, a: &Admission, ctx: &Context) -> Result<Verdict, Error> {
    let obj = if a.object.exists(&[]) {
        &a.object
    } else {
        &a.old
    };
    let does = obj.at(&["spec", entry]);
    let user = a.user();
    tell(
        ctx,
        &json!({
            "entry": entry,
            "id": a.id,
            "controller": ctx.controller(),
            "webhook": a.webhook,
            "operation": a.operation.as_str(),
            "target": target(&a.target),
            "requested": target(&a.requested),
            "key": a.key,
            "new": a.object.exists(&[]),
            "old": a.old.exists(&[]),
            "options": a.options,
            "dry_run": a.dry_run,
            "user": {"username": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra},
            "steps": steps(ctx, obj, does.at(&["steps"])),
        }),
    );
    if does.exists(&["error"]) {
        return Err(failure(does.at(&["error"])));
    }
    Ok(verdict(does))
}

fn target(t: &AdmissionTarget) -> Report {
    json!({
        "group": t.group,
        "version": t.version,
        "kind": t.kind,
        "resource": t.resource,
        "subresource": t.subresource,
    })
}

fn verdict(does: Value) -> Verdict {
    let (object, base) = (does.at(&["object"]), does.at(&["base"]));
    let mut verdict = match (does.exists(&["denied"]), object.exists(&[])) {
        (true, _) => denial(does.at(&["denied"])).into(),
        (_, false) => Verdict::allow(),
        _ if base.exists(&[]) => Verdict::defaulted_from(&base, &object),
        _ => Verdict::defaulted(&object),
    };
    for text in does.strings(&["warnings"]) {
        verdict = verdict.warn(text);
    }
    for (key, value) in does.string_map(&["audit"]) {
        verdict = verdict.audit(key, value);
    }
    verdict
}

fn denial(v: Value) -> Denial {
    let text = |v: Value, key: &str| v.str(&[key]).to_owned();
    let cause = |c: Value| Cause {
        type_: text(c, "type"),
        field: text(c, "field"),
        message: text(c, "message"),
    };
    Denial {
        code: v.int(&["code"]) as u16,
        reason: text(v, "reason"),
        message: text(v, "message"),
        causes: v.elements(&["causes"]).map(cause).collect(),
    }
}

/// Returns the object in the version `to`, or the error that it asks for.
pub fn convert(obj: &Object, to: &str, ctx: &Context) -> Result<Object<'static>, Error> {
    let does = obj.at(&["spec", "convert"]);
    tell(
        ctx,
        &json!({
            "entry": "convert",
            "to": to,
            "from": obj.api_version(),
            "key": obj.key(),
            "steps": steps(ctx, obj, does.at(&["steps"])),
        }),
    );
    if does.exists(&["error"]) {
        return Err(failure(does.at(&["error"])));
    }
    let mut out = obj.to_owned();
    out.set(&["apiVersion"], to)?;
    Ok(out)
}
