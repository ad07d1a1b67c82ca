//! The host functions of the reconciler ABI (abi/ABI.md, section 5) as a trait,
//! so that natively run tests can be the host.

/// An operation: a host function that takes a request and returns data. In a
/// module it carries the import, so that a module imports those only that it
/// uses.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    /// The name of the import.
    pub(crate) name: &'static str,
    /// Where `name` is `call`: the number that it is called with.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    pub(crate) number: i32,
    #[cfg(target_arch = "wasm32")]
    pub(crate) import: crate::imports::Import,
}

/// The host functions.
pub(crate) trait Host {
    /// Carries out an operation. The answer has been written to `dst` if it fits;
    /// else the host holds it for `take`. Returns the status and the length.
    fn call(&self, op: &Op, req: &[u8], dst: &mut [u8]) -> (i32, usize);
    /// Copies the held answer into `dst` and returns how many bytes it copied;
    /// below 0 is a status.
    fn take(&self, dst: &mut [u8]) -> i32;
    /// Writes UTF-8 text or a msgpack map to the host's log.
    fn log(&self, level: i32, msg: &[u8]);
    /// The lowest level that the host keeps.
    fn log_level(&self) -> i32;
    /// Counts or sets a metric; the answer is a status.
    fn metric(&self, kind: i32, name: &str, value: f64) -> i32;
    /// The Unix time in milliseconds.
    fn now_ms(&self) -> i64;
    /// A clock that never goes back, in nanoseconds.
    fn mono_ns(&self) -> i64;
    /// Fills `dst`, at most 65536 bytes; the answer is a status.
    fn random(&self, dst: &mut [u8]) -> i32;
    /// Whether the host is stopping.
    fn cancelled(&self) -> bool;
    /// What is left of a kind; -1: not bounded, or not known.
    fn budget(&self, kind: i32) -> i64;
}
