// SPDX-License-Identifier: Apache-2.0
//! The host functions of the reconciler ABI (abi/ABI.md, section 5) as a trait, so that
//! native tests can implement the host.

/// An operation: a host function that takes a request and returns data. In a module it
/// refers to the import, so that a module imports only the operations that it uses.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    /// The name of the import.
    pub(crate) name: &'static str,
    #[cfg(target_arch = "wasm32")]
    pub(crate) import: crate::imports::Import,
}

/// The host functions.
pub(crate) trait Host {
    /// Runs an operation. The host writes the answer to `dst` if it fits, otherwise it
    /// stores the answer for `take`. Returns the status and the length.
    fn call(&self, op: &Op, req: &[u8], dst: &mut [u8]) -> (i32, usize);
    /// Copies the stored answer into `dst` and returns the number of copied bytes; a
    /// negative result is a status.
    fn take(&self, dst: &mut [u8]) -> i32;
    /// Writes UTF-8 text or a msgpack map to the host's log.
    fn log(&self, level: i32, msg: &[u8]);
    /// The lowest level that the host records.
    fn log_level(&self) -> i32;
    /// Adds to a counter or sets a gauge, and returns a status.
    fn metric(&self, kind: i32, name: &str, value: f64) -> i32;
    /// The Unix time in milliseconds.
    fn now_ms(&self) -> i64;
    /// A clock that never goes back, in nanoseconds.
    fn mono_ns(&self) -> i64;
    /// Fills `dst` and returns whether the host had random bytes.
    fn random(&self, dst: &mut [u8]) -> bool;
    /// Whether the host is stopping.
    fn cancelled(&self) -> bool;
    /// The remaining budget of a kind, or -1 if it is unlimited or unknown.
    fn budget(&self, kind: i32) -> i64;
}
