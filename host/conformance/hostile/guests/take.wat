;; Takes what is not held, and what is held again and again, from everywhere.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (import "reconciler_v1" "take" (func $take (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32)
    (if (i32.ne (call $take (i32.const 0) (i32.const 0) (i32.const 16)) (i32.const -3)) (then (unreachable)))
    (drop (call $api_get (i32.const 16) (i32.const 1) (i32.const 0) (i32.const 0)))
    (loop $next
      (drop (call $take (i32.const 0) (local.get $n) (i32.const 65536)))
      (local.set $n (i32.add (local.get $n) (i32.const 4194301)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const -4194302))))
    (i64.const 0)))
