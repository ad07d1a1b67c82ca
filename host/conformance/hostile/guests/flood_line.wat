;; Writes one line without an end to stdout, 64 KiB at a time.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\00\00\00\00\00\00\01\00")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32)
    (loop $next
      (drop (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 512)))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const 2000))))
    (i64.const 0)))
