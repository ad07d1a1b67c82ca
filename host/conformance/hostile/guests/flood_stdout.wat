;; Writes a hundred thousand lines to stdout and stderr, and traps.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\20\00\00\00\10\00\00\00")
  (data (i32.const 32) "hello from guest")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32)
    (loop $next
      (drop (call $fd_write (i32.add (i32.const 1) (i32.and (local.get $n) (i32.const 1))) (i32.const 16) (i32.const 1) (i32.const 512)))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const 100000))))
    (unreachable)))
