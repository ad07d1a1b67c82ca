;; Writes 16 MiB two million times to stdout, with one call of WASI: more vectors
;; than a call may have.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $at i32)
    (drop (memory.grow (i32.const 255)))
    (loop $next
      (i32.store offset=4 (local.get $at) (i32.const 16777216)) ;; from 0 on, all of its memory
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 16777208))))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 2097151) (i32.const 16777208)))
    (i64.const 0)))
