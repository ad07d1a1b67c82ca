// SPDX-License-Identifier: Apache-2.0
//! The host of a module: the imports from `reconciler_v1`.
//!
//! Every function here passes the host the address and length of a slice that lives for
//! the entire call. The host accesses only these bytes, and never calls back.
#![allow(unsafe_code)]

use crate::host::{Host, Op};

/// The type of an operation: it takes the request and the block for the answer, and
/// returns status and length.
pub(crate) type Import = fn(&[u8], &mut [u8]) -> u64;

macro_rules! operations {
    ($($constant:ident $name:ident)*) => {
        #[link(wasm_import_module = "reconciler_v1")]
        extern "C" {
            $(fn $name(req: *const u8, req_len: u32, dst: *mut u8, dst_cap: u32) -> u64;)*
        }

        $(pub(crate) const $constant: Op = Op {
            name: stringify!($name),
            // SAFETY: both slices live for the entire call; see the module.
            import: |req, dst| unsafe { $name(req.as_ptr(), req.len() as u32, dst.as_mut_ptr(), dst.len() as u32) },
        };)*
    };
}

operations! {
    API_GET api_get
    API_LIST api_list
    API_CREATE api_create
    API_UPDATE api_update
    API_PATCH api_patch
    API_APPLY api_apply
    API_DELETE api_delete
    CACHE_GET cache_get
    CACHE_LIST cache_list
    EVENT_RECORD event_record
    CONFIG_GET config_get
}

#[link(wasm_import_module = "reconciler_v1")]
extern "C" {
    fn take(dst: *mut u8, off: u32, cap: u32) -> i32;
    fn log(level: i32, msg: *const u8, len: u32);
    fn log_level() -> i32;
    fn metric(kind: i32, name: *const u8, name_len: u32, value: f64) -> i32;
    fn cancelled() -> i32;
    fn budget(kind: i32) -> i64;
}

/// The host of this module.
pub(crate) struct WasmHost;

// SAFETY of all calls below: the slices live for the entire call; see the module.
impl Host for WasmHost {
    fn call(&self, op: &Op, req: &[u8], dst: &mut [u8]) -> (i32, usize) {
        let answer = (op.import)(req, dst);
        ((answer >> 32) as i32, answer as u32 as usize)
    }

    fn take(&self, dst: &mut [u8]) -> i32 {
        unsafe { take(dst.as_mut_ptr(), 0, dst.len() as u32) }
    }

    fn log(&self, level: i32, msg: &[u8]) {
        unsafe { log(level, msg.as_ptr(), msg.len() as u32) }
    }

    fn log_level(&self) -> i32 {
        unsafe { log_level() }
    }

    fn metric(&self, kind: i32, name: &str, value: f64) -> i32 {
        unsafe { metric(kind, name.as_ptr(), name.len() as u32, value) }
    }

    fn now_ms(&self) -> i64 {
        clock(0) / 1_000_000
    }

    fn mono_ns(&self) -> i64 {
        clock(1)
    }

    fn random(&self, dst: &mut [u8]) -> bool {
        unsafe { random_get(dst.as_mut_ptr(), dst.len() as u32) == 0 }
    }

    fn cancelled(&self) -> bool {
        unsafe { cancelled() != 0 }
    }

    fn budget(&self, kind: i32) -> i64 {
        unsafe { budget(kind) }
    }
}

#[repr(C)]
struct Chunk {
    ptr: *const u8,
    len: u32,
}

// The functions of WASI that the SDK needs on every target. The standard library of
// wasm32-unknown-unknown has neither clocks nor random numbers, and discards output.
#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time: *mut i64) -> i32;
    fn random_get(dst: *mut u8, len: u32) -> i32;
    fn fd_write(fd: i32, chunks: *const Chunk, n: u32, written: *mut u32) -> i32;
    fn args_sizes_get(count: *mut u32, size: *mut u32) -> i32;
    fn args_get(places: *mut u32, text: *mut u8) -> i32;
}

/// The first argument of the program, which is the name of the controller.
pub(crate) fn controller() -> String {
    let (mut count, mut size) = (0, 0);
    // SAFETY: count and size live for the entire call.
    if unsafe { args_sizes_get(&mut count, &mut size) } != 0 {
        return String::new();
    }
    let (mut places, mut text) = (vec![0; count as usize], vec![0; size as usize]);
    // SAFETY: both have the sizes that the host named, and live for the entire call.
    if unsafe { args_get(places.as_mut_ptr(), text.as_mut_ptr()) } != 0 {
        return String::new();
    }
    let name = text.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Reads a clock of WASI, in nanoseconds: 0 is the Unix time, 1 never goes back.
fn clock(id: u32) -> i64 {
    let mut ns = 0;
    // SAFETY: ns lives for the entire call.
    unsafe { clock_time_get(id, 1, &mut ns) };
    ns
}

/// Writes to stderr. The host shows its last lines in the error of a trap.
pub(crate) fn stderr(text: &str) {
    let chunk = Chunk { ptr: text.as_ptr(), len: text.len() as u32 };
    let mut written = 0;
    // SAFETY: chunk, its text and written live for the entire call.
    let _ = unsafe { fd_write(2, &chunk, 1, &mut written) };
}
