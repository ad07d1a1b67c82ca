// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use wasmctl::{json, Attr, Budget, Context, Level, Metric, Object, Reason, Type, Value};

use crate::ops::{fault, operate, Report};

/// Carries out all steps of a list and returns one report for each.
pub fn steps(ctx: &Context, obj: &Object, list: Value) -> Vec<Report> {
    list.elements(&[]).map(|s| step(ctx, obj, s)).collect()
}

fn step(ctx: &Context, obj: &Object, s: Value) -> Report {
    match s.str(&["do"]) {
        "request" => request(ctx, obj, s),
        "echo" => echo(s.at(&["value"])),
        "read" => read(obj, s.str(&["as"]), &s.strings(&["path"])),
        "op" => operate(ctx, s.str(&["op"]), s.at(&["request"])),
        "log" => log(ctx, s),
        "levels" => {
            let levels = [Level::Debug, Level::Info, Level::Warn, Level::Error];
            let kept: Vec<_> = levels
                .into_iter()
                .filter(|l| ctx.log().enabled(*l))
                .map(|l| l as i32)
                .collect();
            json!({"kept": kept})
        }
        "trap" => panic!("{}", s.str(&["text"])),
        "spin" => spin(),
        "grow" => grow(),
        other => facts(ctx, other, s),
    }
}

/// The steps that ask the host for one thing.
fn facts(ctx: &Context, what: &str, s: Value) -> Report {
    match what {
        "now" => json!({"ms": ctx.now().unix_ms()}),
        "mono" => {
            let first = ctx.monotonic();
            json!({"ns": [first.as_nanos() as i64, ctx.monotonic().as_nanos() as i64]})
        }
        "random" => {
            let mut b = vec![0; s.int(&["len"]) as usize];
            match ctx.random(&mut b) {
                Ok(()) => json!({"hex": b.iter().map(|b| format!("{b:02x}")).collect::<String>()}),
                Err(e) => fault(&e),
            }
        }
        "metric" => {
            let kind = if s.int(&["kind"]) == 0 {
                Metric::Counter
            } else {
                Metric::Gauge
            };
            match ctx.metric(kind, s.str(&["name"]), s.float(&["value"])) {
                Ok(()) => json!({"status": 0}),
                Err(e) => fault(&e),
            }
        }
        "cancelled" => json!({"cancelled": ctx.cancelled()}),
        "budget" => {
            let kind = match s.int(&["kind"]) {
                0 => Budget::Milliseconds,
                1 => Budget::HostCalls,
                2 => Budget::Fuel,
                other => Budget::Other(other as i32),
            };
            json!({"left": ctx.budget(kind).map_or(-1, |left| left as i64)})
        }
        _ => json!({"lacks": what}),
    }
}

/// All that the SDK says of the run.
pub fn request(ctx: &Context, obj: &Object, s: Value) -> Report {
    let (reasons, dropped) = ctx.reasons();
    let caps: BTreeMap<_, _> = s
        .strings(&["caps"])
        .into_iter()
        .map(|c| (c.clone(), ctx.host_has(&c)))
        .collect();
    json!({
        "id": ctx.id(),
        "controller": ctx.controller(),
        "reason": reason(&ctx.reason()),
        "reasons": reasons.iter().map(reason).collect::<Vec<_>>(),
        "dropped": dropped,
        "attempt": ctx.attempt(),
        "key": ctx.key(),
        "stale": ctx.stale(),
        "config_gen": ctx.config_generation(),
        "deadline_ms": ctx.deadline().map_or(0, |t| t.unix_ms()),
        "dry_run": ctx.dry_run(),
        "caps": caps,
        "object": obj.exists(&[]),
    })
}

fn reason(r: &Reason) -> Report {
    json!({"type": r.type_, "resource": r.resource, "ref": r.object})
}

/// Any value as plain values of Rust.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Plain {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Array(Vec<Plain>),
    Map(BTreeMap<String, Plain>),
}

fn echo(v: Value) -> Report {
    match v.decode::<Plain>(&[]) {
        Ok(plain) => json!({"value": plain}),
        Err(e) => json!({"failed": e.to_string()}),
    }
}

fn read(obj: &Object, form: &str, path: &[String]) -> Report {
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    match form {
        "string" => json!({"value": obj.str(&path)}),
        "int" => json!({"value": obj.int(&path)}),
        "float" => json!({"value": obj.float(&path)}),
        "bool" => json!({"value": obj.bool(&path)}),
        "len" => json!({"value": obj.len(&path)}),
        _ => json!({"value": match obj.type_of(&path) {
            Type::Absent => "absent",
            Type::Nil => "nil",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Float => "float",
            Type::String => "string",
            Type::Array => "array",
            Type::Map => "map",
            Type::Opaque => "opaque",
        }}),
    }
}

fn log(ctx: &Context, s: Value) -> Report {
    let level = match s.int(&["level"]) {
        -4 => Level::Debug,
        0 => Level::Info,
        4 => Level::Warn,
        8 => Level::Error,
        _ => return json!({"lacks": "log"}),
    };
    let attrs: Vec<_> = s.entries(&["attrs"]).collect();
    let attrs: Vec<(&str, &dyn Attr)> = attrs.iter().map(|(k, v)| (*k, v as &dyn Attr)).collect();
    ctx.log().log(level, s.str(&["msg"]), &attrs);
    json!({})
}

/// Keeps the compiler from seeing that the loops below do nothing.
static DONE: AtomicU64 = AtomicU64::new(0);

fn spin() -> ! {
    loop {
        DONE.fetch_add(1, Ordering::Relaxed);
    }
}

fn grow() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(vec![1u8; 1 << 20]);
        DONE.fetch_add(
            kept.iter().map(|b| u64::from(b[4096])).sum(),
            Ordering::Relaxed,
        );
    }
}
