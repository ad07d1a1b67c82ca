;; Asks for operations that there are not, by name and by number; traps where
;; they are not UNSUPPORTED.
(module
  (import "reconciler_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $want (param $answer i64) (param $status i64) ;; traps where an operation has another status
    (if (i64.ne (i64.shr_s (local.get $answer) (i64.const 32)) (local.get $status)) (then (unreachable))))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $op i32)
    (local.set $op (i32.const -2))
    (loop $ops
      (if (i32.or (i32.lt_s (local.get $op) (i32.const 1)) (i32.gt_s (local.get $op) (i32.const 11)))
        (then (call $want (call $call (local.get $op) (i32.const 0) (i32.const 1) (i32.const 512) (i32.const 256)) (i64.const -1))))
      (local.set $op (i32.add (local.get $op) (i32.const 1)))
      (br_if $ops (i32.lt_s (local.get $op) (i32.const 200))))
    (call $want (call $call (i32.const 0x7fffffff) (i32.const 0) (i32.const 1) (i32.const 512) (i32.const 256)) (i64.const -1))
    (call $want (call $call (i32.const 0x80000000) (i32.const 0) (i32.const 1) (i32.const 512) (i32.const 256)) (i64.const -1))
    (i64.const 0)))
