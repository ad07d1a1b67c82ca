;; Sleeps for an hour, by WASI.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i32.store (i32.const 16) (i32.const 1)) ;; the monotonic clock
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (drop (call $poll_oneoff (i32.const 0) (i32.const 512) (i32.const 1) (i32.const 600)))
    (i64.const 0)))
