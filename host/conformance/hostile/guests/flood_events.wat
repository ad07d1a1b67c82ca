;; Records a thousand events; traps where more than its limit are taken.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "event_record" (func $event_record (type $op)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\81\a6reason\a1X")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32) (local $taken i32)
    (loop $next
      (local.set $taken (i32.add (local.get $taken) (i64.eqz (i64.shr_s (call $event_record (i32.const 16) (i32.const 10) (i32.const 4096) (i32.const 4096)) (i64.const 32)))))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const 1000))))
    (if (i32.gt_u (local.get $taken) (i32.const 100)) (then (unreachable)))
    (i64.const 0)))
