// SPDX-License-Identifier: Apache-2.0
/// Makes a module from a function that returns a [`Reconciler`](crate::Reconciler): it
/// defines the functions that a host calls (abi/ABI.md, section 1). Use it once, in the
/// root of a `cdylib`.
///
/// ```
/// # use wasmctl::{Action, Context, Error, Manifest, Object, Reconciler};
/// fn reconciler() -> Reconciler {
///     Reconciler::new(Manifest::default(), |_: &Object, _: &Context| Ok::<_, Error>(Action::await_change()))
/// }
///
/// wasmctl::export!(reconciler);
/// ```
///
/// In a native build it defines nothing, so that tests link. The function runs once in
/// each instance. If it panics, or if the reconciler is inconsistent, the host does not
/// load the module, and shows the reason.
#[macro_export]
macro_rules! export {
    ($reconciler:path) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            extern "C" {
                // The linker inserts a call of this function at each entry point, unless
                // the module calls it itself.
                fn __wasm_call_ctors();
            }

            #[no_mangle]
            extern "C" fn _initialize() {
                // SAFETY: the linker defines the function, and it is called once.
                unsafe { __wasm_call_ctors() };
                $crate::exports::initialize($reconciler);
            }

            #[no_mangle]
            extern "C" fn reconciler_abi_1() {}

            #[no_mangle]
            extern "C" fn buffer(size: u32) -> u32 {
                $crate::exports::buffer(size)
            }

            #[no_mangle]
            extern "C" fn reconcile(at: u32, len: u32) -> u64 {
                $crate::exports::reconcile(at, len)
            }

            #[no_mangle]
            extern "C" fn error_policy(at: u32, len: u32) -> u64 {
                $crate::exports::error_policy(at, len)
            }

            #[no_mangle]
            extern "C" fn finalize(at: u32, len: u32) -> u64 {
                $crate::exports::finalize(at, len)
            }

            #[no_mangle]
            extern "C" fn map(at: u32, len: u32) -> u64 {
                $crate::exports::map(at, len)
            }

            #[no_mangle]
            extern "C" fn filter(at: u32, len: u32) -> u32 {
                $crate::exports::filter(at, len)
            }

            #[no_mangle]
            extern "C" fn configure(at: u32, len: u32) -> u64 {
                $crate::exports::configure(at, len)
            }

            #[no_mangle]
            extern "C" fn validate(at: u32, len: u32) -> u64 {
                $crate::exports::validate(at, len)
            }

            #[no_mangle]
            extern "C" fn default(at: u32, len: u32) -> u64 {
                $crate::exports::default(at, len)
            }

            #[no_mangle]
            extern "C" fn convert(at: u32, len: u32) -> u64 {
                $crate::exports::convert(at, len)
            }

            #[no_mangle]
            extern "C" fn describe() -> u64 {
                $crate::exports::describe()
            }
        };
    };
}
