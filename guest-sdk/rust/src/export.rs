// SPDX-License-Identifier: Apache-2.0
//! The functions that `export!` calls in a module.

use std::cell::RefCell;

use crate::guest::{Entry, Guest};
use crate::imports::{self, WasmHost};
use crate::memory::{address, Block};
use crate::reconciler::Reconciler;
use crate::wire::MAX_BYTES;

/// The only guest of this module. It owns all memory that the host reads and writes.
struct Instance {
    reconciler: Option<Reconciler>,
    guest: Guest<'static>,
    /// The host writes requests here.
    block: Block,
    /// The result of the last entry call.
    result: Vec<u8>,
}

thread_local! {
    static INSTANCE: RefCell<Instance> = RefCell::new(Instance {
        reconciler: None,
        guest: Guest::new(&WasmHost),
        block: Block::default(),
        result: Vec::new(),
    });
}

/// Starts the instance. From here on, a panic sends its message to the host before it
/// ends the call.
pub fn initialize(f: fn() -> Reconciler) {
    std::panic::set_hook(Box::new(|info| imports::stderr(&format!("{info}\n"))));
    let r = f();
    if let Some(problem) = r.problem() {
        panic!("wasmctl::export!: {problem}");
    }
    INSTANCE.with(|i| i.borrow_mut().reconciler = Some(r));
}

/// Implements the export `buffer`.
pub fn buffer(size: u32) -> u32 {
    let size = size as usize;
    if size > MAX_BYTES {
        return 0;
    }
    INSTANCE.with(|i| address(i.borrow_mut().block.reserve(size.max(1))))
}

fn enter(entry: Entry, at: u32, len: u32) -> u64 {
    INSTANCE.with(|i| {
        let i = &mut *i.borrow_mut();
        let r = i.reconciler.as_ref().expect("wasmctl: _initialize was not called");
        i.guest.call(r, entry, message(&i.block, at, len), &mut i.result);
        pack(&i.result)
    })
}

/// The request, which the host has written into the block that `buffer` returned. It is
/// empty if `at` and `len` lie outside of that block.
fn message(block: &Block, at: u32, len: u32) -> &[u8] {
    match block.bytes().get(..len as usize) {
        Some(msg) if at == address(block.bytes()) => msg,
        _ => &[],
    }
}

/// The address and length of `b` as the result of an entry function.
fn pack(b: &[u8]) -> u64 {
    u64::from(address(b)) << 32 | b.len() as u64
}

/// The export `reconcile`.
pub fn reconcile(at: u32, len: u32) -> u64 {
    enter(Entry::Reconcile, at, len)
}

/// The export `error_policy`.
pub fn error_policy(at: u32, len: u32) -> u64 {
    enter(Entry::ErrorPolicy, at, len)
}

/// The export `finalize`.
pub fn finalize(at: u32, len: u32) -> u64 {
    enter(Entry::Finalize, at, len)
}

/// The export `map`.
pub fn map(at: u32, len: u32) -> u64 {
    enter(Entry::Map, at, len)
}

/// The export `configure`.
pub fn configure(at: u32, len: u32) -> u64 {
    enter(Entry::Configure, at, len)
}

/// The export `validate`.
pub fn validate(at: u32, len: u32) -> u64 {
    enter(Entry::Validate, at, len)
}

/// The export `default`.
pub fn default(at: u32, len: u32) -> u64 {
    enter(Entry::Default, at, len)
}

/// The export `convert`.
pub fn convert(at: u32, len: u32) -> u64 {
    enter(Entry::Convert, at, len)
}

/// The export `filter`.
pub fn filter(at: u32, len: u32) -> u32 {
    INSTANCE.with(|i| {
        let i = &*i.borrow();
        let r = i.reconciler.as_ref().expect("wasmctl: _initialize was not called");
        u32::from(i.guest.keep(r, message(&i.block, at, len)))
    })
}

/// The export `describe`.
pub fn describe() -> u64 {
    INSTANCE.with(|i| {
        let i = &mut *i.borrow_mut();
        i.result = i.reconciler.as_ref().expect("wasmctl: _initialize was not called").describe();
        pack(&i.result)
    })
}
