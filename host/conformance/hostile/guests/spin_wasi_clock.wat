;; Waits by the clock of WASI for a time that does not come.
(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $forever (br_if $forever (i32.eqz (call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 0)))))
    (unreachable)))
