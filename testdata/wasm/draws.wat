;; Draws 4 random bytes in one of its entries, as the letter at 72 says: i in _initialize,
;; d in describe, c in configure, r in reconcile. Tests replace the letter. reconcile asks for
;; a requeue in as many ms as the bytes say.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\80")
  (data (i32.const 32) "\82\a6action\a7requeue\a8after_ms\ce\00\00\00\00")
  (data (i32.const 64) "draw in -")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $draw (param $in i32)
    (if (i32.eq (i32.load8_u (i32.const 72)) (local.get $in)) (then
      (drop (call $random_get (i32.const 58) (i32.const 4)))
      ;; at most 26 bits, so that each value is a delay
      (i32.store8 (i32.const 58) (i32.and (i32.load8_u (i32.const 58)) (i32.const 3))))))
  (func (export "_initialize") (call $draw (i32.const 105)))
  (func (export "describe") (result i64)
    (call $draw (i32.const 100))
    (i64.const 0x1000000001))
  (func (export "configure") (param i32 i32) (result i64)
    (call $draw (i32.const 99))
    (i64.const 0))
  (func (export "reconcile") (param i32 i32) (result i64)
    (call $draw (i32.const 114))
    (i64.const 0x200000001e)))
