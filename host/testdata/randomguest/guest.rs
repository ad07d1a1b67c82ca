// SPDX-License-Identifier: Apache-2.0

//! Draws 4 random bytes in one of its entries, as the letter at the end of DRAW says: i in
//! _initialize, d in describe, c in configure, r in reconcile. Tests replace the letter.
//! reconcile asks for a requeue in as many ms as the bytes say.

use std::ptr::{addr_of, addr_of_mut};

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    fn random_get(dst: *mut u8, len: usize) -> u32;
}

static mut MESSAGE: [u64; 8192] = [0; 8192];
static mut DRAW: [u8; 9] = *b"draw in -";
static mut ANSWER: [u8; 30] = *b"\x82\xa6action\xa7requeue\xa8after_ms\xce\0\0\0\0";
static EMPTY: [u8; 1] = [0x80];

fn draw(entry: u8) {
    unsafe {
        if addr_of!(DRAW[8]).read_volatile() == entry {
            random_get(addr_of_mut!(ANSWER[26]), 4);
            ANSWER[26] &= 3; // at most 26 bits, so that each value is a delay
        }
    }
}

fn pack(b: *const u8, len: usize) -> u64 {
    (b as u64) << 32 | len as u64
}

#[no_mangle]
pub extern "C" fn reconciler_abi_1() {}

#[no_mangle]
pub extern "C" fn buffer(_: u32) -> *mut u64 {
    addr_of_mut!(MESSAGE) as *mut u64
}

#[no_mangle]
pub extern "C" fn _initialize() {
    draw(b'i')
}

#[no_mangle]
pub extern "C" fn describe() -> u64 {
    draw(b'd');
    pack(addr_of!(EMPTY) as *const u8, 1)
}

#[no_mangle]
pub extern "C" fn configure(_: *const u8, _: usize) -> u64 {
    draw(b'c');
    0
}

#[no_mangle]
pub extern "C" fn reconcile(_: *const u8, _: usize) -> u64 {
    draw(b'r');
    pack(addr_of!(ANSWER) as *const u8, 30)
}
