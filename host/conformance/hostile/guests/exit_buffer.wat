;; Exits where it is asked for a buffer.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (call $proc_exit (i32.const 7)) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
