;; Takes all memory that it can get, writes to each page, and sleeps for an hour with it.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64)
    (block $refused
      (loop $again
        (br_if $refused (i32.eq (memory.grow (memory.size)) (i32.const -1)))
        (memory.fill (i32.const 0) (i32.const 170) (i32.shl (memory.size) (i32.const 16)))
        (br $again)))
    ;; one subscription: to the monotonic clock, relative
    (memory.fill (i32.const 4096) (i32.const 0) (i32.const 48))
    (i32.store (i32.const 4112) (i32.const 1))
    (i64.store (i32.const 4120) (i64.const 3600000000000))
    (drop (call $poll_oneoff (i32.const 4096) (i32.const 4160) (i32.const 1) (i32.const 4224)))
    (i64.const 0)))
