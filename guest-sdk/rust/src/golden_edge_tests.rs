// SPDX-License-Identifier: Apache-2.0
//! The golden messages at the edges: large numbers, newer hosts, fields, statuses.

use crate::golden_tests::{asked, equal, golden, run, sorted};
use crate::script::Script;
use crate::*;

#[test]
fn edges_are_read_exactly() {
    let out = run(&Script::default(), "request-edges", |obj, ctx| {
        assert_eq!((ctx.attempt(), ctx.config_generation()), (1 << 31, i64::MAX));
        let ints: Vec<i64> = obj.decode(&["spec", "ints"])?;
        assert_eq!(ints, [i64::MAX, i64::MIN, 9_007_199_254_740_993, 4_294_967_295, -33, 0]);
        let floats: Vec<f64> = obj.decode(&["spec", "floats"])?;
        assert_eq!(floats, [0.1, f64::MAX, 5e-324, 16_777_217.5, 1.0]);
        assert_eq!((obj.str(&["spec", ""]), obj.type_of(&["spec", "a.b/c"])), ("empty key", Type::Map));
        assert_eq!((obj.type_of(&["spec", "nil"]), obj.exists(&["spec", "nil"])), (Type::Nil, false));
        assert_eq!(obj.strings(&["spec", "strings"])[1..3], ["größe 😀", "a\0b"]);
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

#[test]
fn what_a_newer_host_says_is_passed_over_or_kept() {
    let out = run(&Script::default(), "request-future", |obj, ctx| {
        assert_eq!((ctx.reason().type_, ctx.key().to_string().as_str()), ("SolarFlare", "default/hello"));
        assert!(ctx.host_has("teleport") && obj.str(&["spec", "text"]) == "hello");
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

#[test]
fn writes_settings_and_fields_are_written() {
    for name in ["api-create", "api-update"] {
        let message = golden(name);
        let object = Object::new(&Value::of(&message).at(&["object"])).unwrap();
        let strict = PostParams { field_validation: "Strict".into(), ..PostParams::default() };
        let held = Preconditions { resource_version: "4711".into(), ..Preconditions::default() };
        let status = PostParams { preconditions: held, ..strict.clone() };
        let sent = asked(move |ctx| match name {
            "api-create" => Ok(ctx.client().create(&object, &strict).map(drop)?),
            _ => Ok(ctx.client().update_status(&object, &status).map(drop)?),
        });
        equal(&sent, name);
    }
    equal(&asked(|ctx| Ok(ctx.config("suffix").map(drop)?)), "config-key");
    equal(&asked(|ctx| Ok(ctx.all_config().map(drop)?)), "config-all");

    let list = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let fields =
        ["spec.replicas", "metadata.annotations[\"example.com/by\"]", "spec.template.spec.containers[name=app].image"];
    let capability = Capability {
        namespaces: list(&["default"]),
        names: list(&["web"]),
        fields: list(&fields),
        ..Capability::new("apps", "deployments", &["get", "patch"])
    };
    let message = golden("manifest-fields");
    let want = Value::of(&message).elements(&["capabilities"]).next().unwrap();
    assert_eq!(sorted(Object::new(&capability).unwrap().value()), sorted(want));
    assert_eq!(Capability::read(want), capability);
}

#[test]
fn statuses_of_both_servers_are_read() {
    let call = |status, body: &str| ApiError::read(&crate::imports::API_PATCH, status, &golden(body));
    let denied = call(-2, "status-denied-fields");
    assert_eq!(denied.rule.as_ref().map(|r| r.fields.as_slice()), Some(&["spec.paused".to_owned()][..]));
    let missing = call(404, "status-notfound");
    assert!(missing.is_not_found() && denied.is_denied());
    assert_eq!(missing.to_string(), "api_patch: NotFound: configmaps \"hello-content\" not found");
}
