// SPDX-License-Identifier: Apache-2.0
//! Compares reading in place with a complete decoder, on random values and on random
//! bytes.

use super::*;
use crate::guest::{Entry, Guest};
use crate::script::Script;
use crate::{
    json, Action, Admission, Context, Conversion, Error, Manifest, Object, Reconciler, Value, Verdict, Webhook,
};

/// A small generator of random numbers, so that tests are the same in each run.
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const KEYS: [&str; 6] = ["a", "b", "größe", "a.b/c", "", "the-key-that-is-longer-than-thirty-one-bytes"];

/// Appends a random value.
fn value(r: &mut Random, dst: &mut Vec<u8>, depth: usize) {
    match r.below(if depth == 0 { 6 } else { 8 }) {
        0 => write::append_nil(dst),
        1 => write::append_bool(dst, r.below(2) == 0),
        2 => append_int(dst, (r.next() >> r.below(64)) as i64),
        3 => write::append_float(dst, r.next() as i32 as f64 / 8.0),
        4 => append_str(dst, KEYS[r.below(6) as usize]),
        5 => append_str(dst, &"x".repeat(r.below(70_000) as usize >> r.below(16))),
        6 => {
            let n = r.below(18);
            append_array(dst, n as usize);
            (0..n).for_each(|_| value(r, dst, depth - 1));
        }
        _ => {
            let n = r.below(KEYS.len() as u64 + 1) as usize;
            write::append_map(dst, n);
            for key in &KEYS[..n] {
                append_str(dst, key);
                value(r, dst, depth - 1);
            }
        }
    }
}

#[test]
fn what_is_written_is_whole_and_reads_back() {
    let mut r = Random(42);
    for _ in 0..2000 {
        let mut b = Vec::new();
        value(&mut r, &mut b, 3);
        assert_eq!(check(&b), Ok(()));
        assert_eq!(trim(&b).len(), b.len());
        // Round trip through serde's data model.
        let mut copy = Vec::new();
        append(&mut copy, &Value::of(&b)).unwrap();
        assert_eq!(copy, b);
        assert_eq!(from_slice::<Object<'static>>(&b).unwrap().raw(), b);
        assert!(from_slice::<serde::de::IgnoredAny>(&b).is_ok());
    }
}

#[test]
fn paths_find_what_a_walk_finds() {
    let mut r = Random(7);
    for _ in 0..2000 {
        let mut b = Vec::new();
        value(&mut r, &mut b, 3);
        let v = Value::of(&b);
        assert_eq!(v.entries(&[]).count() + v.elements(&[]).count(), v.len(&[]));
        for (key, inner) in v.entries(&[]) {
            assert_eq!(v.at(&[key]), inner);
            for (key2, inner2) in inner.entries(&[]) {
                assert_eq!(v.at(&[key, key2]), inner2);
            }
        }
        assert_eq!(v.at(&["no such key"]).raw(), &[] as &[u8]);
    }
}

/// The positions and bytes of all values that are two keys deep, in the order of
/// iteration.
fn reads(b: &[u8], steps: &[u64]) -> Vec<(usize, Vec<u8>)> {
    let v = Value::of(b);
    let read = |i: &u64| {
        let found = v.at(&[KEYS[*i as usize % 6], KEYS[*i as usize / 6 % 6]]);
        (found.view.len(), found.raw().to_vec())
    };
    steps.iter().map(read).collect()
}

/// Cached positions of a message only save time, and are gone when the next message takes
/// its place.
#[test]
fn known_ends_change_no_read() {
    let mut r = Random(17);
    let (mut b, mut used) = (Vec::with_capacity(1 << 22), 0);
    for round in 0..500 {
        b.clear();
        write::append_map(&mut b, KEYS.len());
        for key in KEYS {
            append_str(&mut b, key);
            value(&mut r, &mut b, 3);
        }
        if round % 4 == 0 {
            b.truncate(1 + r.below(b.len() as u64) as usize);
        }
        let steps: Vec<u64> = (0..50).map(|_| r.next()).collect();
        let want = reads(&b, &steps);
        let _ends = Ends::of(&b);
        assert_eq!(reads(&b, &steps), want);
        used += usize::from((0..b.len()).any(|pos| ends::known(&b, pos).is_some()));
        let elsewhere = b.clone();
        assert_eq!((0..b.len()).find_map(|pos| ends::known(&elsewhere, pos)), None);
    }
    assert!(used > 50, "an end was known in {used} messages only");
    assert_eq!((0..b.len()).find_map(|pos| ends::known(&b, pos)), None);
}

#[test]
fn set_and_remove_change_one_value_and_keep_the_rest() {
    let mut r = Random(99);
    for _ in 0..2000 {
        let (mut b, mut val) = (Vec::new(), Vec::new());
        value(&mut r, &mut b, 3);
        value(&mut r, &mut val, 1);
        let path = [KEYS[r.below(6) as usize], KEYS[r.below(6) as usize]];
        let mut after = Vec::new();
        if set(&mut after, &b, &path, &val).is_err() {
            let step = type_of(&b);
            let next = Value::of(&b).type_of(&path[..1]);
            assert!(![Type::Map, Type::Nil].contains(&step) || ![Type::Map, Type::Nil, Type::Absent].contains(&next));
            continue;
        }
        assert_eq!(check(&after), Ok(()));
        assert_eq!(Value::of(&after).at(&path).raw(), val);
        for (key, inner) in Value::of(&b).entries(&[]).filter(|(key, _)| *key != path[0]) {
            assert_eq!(Value::of(&after).at(&[key]), inner);
        }
        let mut removed = Vec::new();
        remove(&mut removed, &after, &path);
        assert_eq!(check(&removed), Ok(()));
        assert_eq!(Value::of(&removed).type_of(&path), Type::Absent);
        assert_eq!(Value::of(&removed).len(&path[..1]) + 1, Value::of(&after).len(&path[..1]));
    }
}

/// For arbitrary bytes, no function panics or reads past the end.
#[test]
fn any_bytes_are_read_without_a_panic() {
    let mut r = Random(3);
    for round in 0..100_000 {
        let mut b = Vec::new();
        if round % 2 == 0 {
            value(&mut r, &mut b, 2);
            let at = r.below(b.len() as u64) as usize;
            b[at] = r.next() as u8;
            b.truncate(1 + r.below(b.len() as u64).min(4096) as usize);
        } else {
            (0..r.below(24)).for_each(|_| b.push(r.next() as u8));
        }
        let good = check(&b).is_ok();
        let v = Value::of(&b);
        assert!(!good || b.len() == v.raw().len());
        let _ = (v.int(&[]), v.float(&[]), v.str(&[]), v.bool(&["a"]), v.len(&[]), v.time(&[]));
        let _ = (v.entries(&[]).count(), v.elements(&[]).count(), v.strings(&[]), v.string_map(&["a"]));
        let decoded = from_slice::<serde::de::IgnoredAny>(&b);
        assert!(!good || decoded.is_ok());
        let _ = (crate::input::Input::parse(&b), set(&mut Vec::new(), &b, &["a", "b"], &[1]));
        remove(&mut Vec::new(), &b, &["a", "b"]);
    }
}

/// A module that reads all parts of a request, and changes and converts its object.
fn judge() -> Reconciler {
    let read = |a: &Admission<'_>, _: &Context<'_>| {
        let mut object = a.object.clone();
        object.set(&["spec", "by"], &format!("{:?} {:?}", a, a.user()))?;
        Ok::<_, Error>(Verdict::defaulted_from(&a.object, &object).warn(a.old.name()))
    };
    let convert = |obj: &Object<'_>, _: &str, _: &Context<'_>| Ok::<_, Error>(json!({"spec": obj.at(&["spec"])}));
    let manifest = Manifest {
        webhooks: vec![Webhook::default(read).path("/a"), Webhook::validate(read).path("/a")],
        conversions: vec![Conversion::new("example.com", "Web", &[], convert)],
        ..Manifest::default()
    };
    Reconciler::new(manifest, |_: &Object<'_>, _: &Context<'_>| Ok::<_, Error>(Action::await_change()))
}

/// No message of webhooks and conversions makes the module panic, and each is answered.
#[test]
fn requests_with_arbitrary_bytes_are_answered() {
    let web = json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "a"}, "spec": {"n": 1}});
    let target = json!({"group": "example.com", "version": "v1", "kind": "Web", "resource": "webs"});
    let admission = json!({
        "v": 1, "id": "u", "webhook": "/a", "operation": "UPDATE", "target": target, "requested": target,
        "user": {"username": "alice", "groups": ["a"], "extra": {"k": ["v"]}}, "old": web, "object": web,
    });
    let conversion = json!({"v": 1, "to": "example.com/v2", "objects": [web, web]});
    let messages = [admission, conversion].map(|m| crate::action::encode(&m).unwrap());
    let (host, module, mut r, mut good) = (Script::default(), judge(), Random(11), 0);
    for round in 0..20_000_u64 {
        let mut b = messages[round as usize % 2].clone();
        for _ in 0..r.below(3) {
            let at = r.below(b.len() as u64) as usize;
            b[at] = r.next() as u8;
        }
        b.truncate(b.len() - (r.next() as usize % b.len()) * usize::from(round % 5 == 0));
        for entry in [Entry::Validate, Entry::Default, Entry::Convert] {
            let mut out = Vec::new();
            Guest::new(&host).call(&module, entry, &b, &mut out);
            assert!(type_of(&out) == Type::Map || check(&b).is_err(), "{b:x?}");
            good += usize::from(Value::of(&out).exists(&["object"]) || Value::of(&out).exists(&["objects"]));
        }
    }
    assert!(good > 1000, "{good} requests were understood");
}

#[test]
fn heads_that_lie_are_refused() {
    for b in [
        &[0xdd, 0xff, 0xff, 0xff, 0xff][..],
        &[0xdf, 0x7f, 0xff, 0xff, 0xff, 0xc0],
        &[0xdb, 0xff, 0xff, 0xff, 0xff, b'a'],
        &[0x92, 0xdd, 0x00, 0x00, 0x00, 0x02, 0xc0],
        &[0xd9],
        &[0xcd, 1],
    ] {
        assert_eq!(skip_of(b), None, "{b:x?}");
        assert!(check(b).is_err());
    }
}

fn skip_of(b: &[u8]) -> Option<usize> {
    read::skip(b, 0)
}

#[test]
fn integers_keep_their_edges() {
    for i in [0, 1, -1, -32, -33, 127, 128, 255, 256, -128, -129, 65_535, 65_536, -32_768, -32_769].into_iter().chain([
        i64::from(u32::MAX),
        i64::from(u32::MAX) + 1,
        i64::from(i32::MIN),
        i64::from(i32::MIN) - 1,
        i64::MAX,
        i64::MIN,
    ]) {
        let mut b = Vec::new();
        append_int(&mut b, i);
        assert_eq!((read_int(&b), check(&b), from_slice(&b)), (Some(i), Ok(()), Ok(i)));
    }
    assert_eq!(read_int(&[0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0]), None, "beyond an int64");
    let mut b = Vec::new();
    write::append_float(&mut b, 3.0);
    assert_eq!((read_int(&b), from_slice::<u8>(&b)), (Some(3), Ok(3)), "JSON does not tell 1 from 1.0");
    write::append_float(&mut b, 0.0);
    assert_eq!(append(&mut b, &u64::MAX), Err(CodecError::number()));
    assert_eq!(append(&mut b, &f64::NAN), Err(CodecError::number()));
}
