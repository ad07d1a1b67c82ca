// SPDX-License-Identifier: Apache-2.0
//! The host functions for the reconciler.

use std::cell::RefCell;

use super::fault::{bad_request, body};
use super::host::{Line, State};
use super::json::Json;
use crate::api_error::status;
use crate::host::{Host, Op};
use crate::object::Object;
use crate::value::Value;
use crate::wire;

pub(super) struct Functions<'a>(pub(super) &'a RefCell<State>);

impl Host for Functions<'_> {
    fn call(&self, op: &Op, req: &[u8], dst: &mut [u8]) -> (i32, usize) {
        let mut s = self.0.borrow_mut();
        let result = match wire::check(req) {
            Err(e) => Err(bad_request(format!("the request cannot cross the sandbox boundary: {e}"))),
            Ok(()) => s.operate(op.name, Json::read(Value::of(req))),
        };
        let (code, answer) = match result {
            Ok(answer) => (0, answer),
            Err(fault) => (fault.status, body(&fault)),
        };
        s.held.clear();
        let held = &mut s.held;
        wire::append(held, &answer).unwrap_or_else(|e| panic!("testing: answer {answer:?}: {e}"));
        if held.len() <= dst.len() {
            dst[..held.len()].copy_from_slice(held);
        }
        (code, held.len())
    }

    fn take(&self, dst: &mut [u8]) -> i32 {
        let s = self.0.borrow();
        let n = s.held.len().min(dst.len());
        dst[..n].copy_from_slice(&s.held[..n]);
        n as i32
    }

    fn log(&self, level: i32, msg: &[u8]) {
        wire::check(msg).unwrap_or_else(|e| panic!("testing: log: {e}"));
        let mut attrs = Object::view(msg).to_owned();
        let message = attrs.str(&["msg"]).to_owned();
        attrs.remove(&["msg"]);
        self.0.borrow_mut().lines.push(Line { level, message, attrs });
    }

    fn log_level(&self) -> i32 {
        self.0.borrow().log_level
    }

    fn metric(&self, kind: i32, name: &str, value: f64) -> i32 {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && name.chars().all(letter);
        let metrics = &mut self.0.borrow_mut().metrics;
        match (kind, name.strip_suffix("_total")) {
            _ if name.len() > 256 => return status::TOO_LARGE,
            _ if !named || !value.is_finite() => return status::BAD_REQUEST,
            (0, base) if value >= 0.0 => {
                *metrics.entry(format!("{}_total", base.unwrap_or(name))).or_insert(0.0) += value;
            }
            (1, None) => {
                metrics.insert(name.to_owned(), value);
            }
            _ => return status::BAD_REQUEST,
        }
        0
    }

    fn now_ms(&self) -> i64 {
        self.0.borrow().now.unix_ms()
    }

    fn mono_ns(&self) -> i64 {
        self.0.borrow().now.unix_ms().saturating_mul(1_000_000)
    }

    fn random(&self, dst: &mut [u8]) -> bool {
        dst.iter_mut().enumerate().for_each(|(i, b)| *b = i as u8); // deterministic
        true
    }

    fn cancelled(&self) -> bool {
        self.0.borrow().cancelled
    }

    fn budget(&self, _: i32) -> i64 {
        -1
    }
}
