// SPDX-License-Identifier: Apache-2.0
//! A host for tests.

use std::cell::RefCell;

use crate::host::{Host, Op};

/// A host that records the last request and returns a fixed answer.
#[derive(Default)]
pub(crate) struct Script {
    /// The status of the answer.
    pub(crate) status: i32,
    /// The body of the answer.
    pub(crate) answer: Vec<u8>,
    /// The last request.
    pub(crate) asked: RefCell<Vec<u8>>,
}

impl Host for Script {
    fn call(&self, _: &Op, req: &[u8], dst: &mut [u8]) -> (i32, usize) {
        *self.asked.borrow_mut() = req.to_vec();
        if self.answer.len() <= dst.len() {
            dst[..self.answer.len()].copy_from_slice(&self.answer);
        }
        (self.status, self.answer.len())
    }

    fn take(&self, dst: &mut [u8]) -> i32 {
        dst.copy_from_slice(&self.answer[..dst.len()]);
        dst.len() as i32
    }

    fn log(&self, _: i32, _: &[u8]) {}

    fn log_level(&self) -> i32 {
        0
    }

    fn metric(&self, _: i32, _: &str, _: f64) -> i32 {
        0
    }

    fn now_ms(&self) -> i64 {
        0
    }

    fn mono_ns(&self) -> i64 {
        0
    }

    fn random(&self, _: &mut [u8]) -> bool {
        true
    }

    fn cancelled(&self) -> bool {
        false
    }

    fn budget(&self, _: i32) -> i64 {
        -1
    }
}
