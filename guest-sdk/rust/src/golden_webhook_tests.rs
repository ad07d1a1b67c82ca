// SPDX-License-Identifier: Apache-2.0
//! The golden messages of webhooks and conversions.

use std::cell::RefCell;

use crate::golden_tests::{enter, equal, golden};
use crate::guest::Entry;
use crate::script::Script;
use crate::*;

fn module(webhooks: Vec<Webhook>, conversions: Vec<Conversion>) -> Reconciler {
    let manifest = Manifest { webhooks, conversions, ..Manifest::default() };
    Reconciler::new(manifest, |_: &Object<'_>, _: &Context<'_>| Ok::<_, Error>(Action::await_change()))
}

/// Makes the entry call of a golden Admission, which the webhook of its path answers with
/// the verdict.
fn judged(
    message: &str,
    verdict: Result<Verdict, Error>,
    check: impl Fn(&Admission<'_>, &Context<'_>) + 'static,
) -> Vec<u8> {
    let bytes = golden(message);
    let path = Value::of(&bytes).str(&["webhook"]);
    let verdict = RefCell::new(Some(verdict));
    let judge = move |a: &Admission<'_>, ctx: &Context<'_>| {
        check(a, ctx);
        verdict.borrow_mut().take().unwrap()
    };
    let (webhook, entry) = match path.contains("mutate") {
        true => (Webhook::default(judge), Entry::Default),
        false => (Webhook::validate(judge), Entry::Validate),
    };
    enter(&Script::default(), &module(vec![webhook.path(path)], Vec::new()), entry, message)
}

#[test]
fn admissions_are_read() {
    for name in ["admission-create", "admission-update", "admission-delete"] {
        let want = golden(name);
        let out = judged(name, Ok(Verdict::allow()), move |a, ctx| {
            let want = Value::of(&want);
            assert_eq!((a.id, a.webhook), (want.str(&["id"]), want.str(&["webhook"])));
            assert_eq!((ctx.id(), ctx.controller()), (a.id, "configmapgenerator"));
            assert_eq!((a.operation.as_str(), a.dry_run), (want.str(&["operation"]), want.bool(&["dry_run"])));
            assert!(!matches!(a.operation, Operation::Other(_)));
            for (target, key) in [(a.target, "target"), (a.requested, "requested")] {
                let at = |field| want.str(&[key, field]);
                let read = AdmissionTarget {
                    group: at("group"),
                    version: at("version"),
                    kind: at("kind"),
                    resource: at("resource"),
                    subresource: at("subresource"),
                };
                assert_eq!(target, read);
            }
            assert_eq!(a.key, ObjectKey::read(want.at(&["key"])));
            for (object, key) in [(&a.object, "object"), (&a.old, "old"), (&a.options, "options")] {
                assert_eq!((object.value(), object.exists(&[])), (want.at(&[key]), want.exists(&[key])), "{key}");
            }
            let user = a.user();
            assert_eq!(
                (user.username.as_str(), user.uid.as_str()),
                (want.str(&["user", "username"]), want.str(&["user", "uid"]))
            );
            assert_eq!(
                (user.groups, user.extra.len()),
                (want.strings(&["user", "groups"]), want.len(&["user", "extra"]))
            );
            for (key, values) in &user.extra {
                assert_eq!(*values, want.strings(&["user", "extra", key]));
            }
            assert_eq!(ctx.deadline(), Some(Time::from_unix_ms(1_767_225_600_123)));
            assert_eq!((ctx.config_generation(), ctx.dry_run()), (1, a.dry_run));
        });
        equal(&out, "verdict-allowed");
    }
}

#[test]
fn verdicts_are_written() {
    let message = golden("verdict-object");
    let object = Object::new(&Value::of(&message).at(&["object"])).unwrap();
    let causes = [Cause::new("spec.content", "is empty"), Cause { message: "no owner".into(), ..Cause::default() }];
    let cases = [
        ("verdict-allowed", Ok(Verdict::allow())),
        ("verdict-object", Ok(Verdict::defaulted(&object))),
        ("verdict-base", Ok(Verdict::defaulted_from(&json!({"a": 1}), &json!({"a": 2})))),
        ("verdict-denied", Ok(Verdict::deny("no"))),
        ("verdict-invalid", Ok(Verdict::invalid(causes))),
        ("verdict-warnings", Ok(Verdict::allow().warn("spec.content is long").audit("size", "large"))),
        ("verdict-error", Err(Error::msg("the cache has no namespace yet").with_reason("NotSynced"))),
    ];
    for (name, verdict) in cases {
        equal(&judged("admission-update", verdict, |_, _| {}), name);
    }
    let bad = judged("admission-update", Ok(Verdict::defaulted(&f64::NAN)), |_, _| {});
    assert!(Value::of(&bad).str(&["error", "message"]).starts_with("verdict: object: encode: "));
}

#[test]
fn conversions_are_read_and_written() {
    let convert = |result: fn(&Object<'_>) -> Result<Object<'static>, Error>| {
        let conversion = Conversion::new(
            "examples.wasmctl.dev",
            "ConfigMapGenerator",
            &[],
            move |obj: &Object<'_>, to: &str, ctx: &Context<'_>| {
                assert_eq!((to, ctx.host_has("convert")), ("examples.wasmctl.dev/v2", true));
                result(obj)
            },
        );
        enter(&Script::default(), &module(Vec::new(), vec![conversion]), Entry::Convert, "conversion-two")
    };
    equal(&convert(|obj| Ok(obj.to_owned())), "converted-two");
    equal(&convert(|_| Err(Error::msg("no way").permanent())), "converted-error");
}
