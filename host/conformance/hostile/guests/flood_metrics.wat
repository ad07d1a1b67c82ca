;; Reports a hundred thousand metrics of different names, each with NaN and with 1;
;; traps where more than its limit are taken.
(module
  (import "reconciler_v1" "metric" (func $metric (param i32 i32 i32 f64) (result i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32) (local $taken i32)
    (loop $next
      (i32.store8 (i32.const 16) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 0)) (i32.const 15))))
      (i32.store8 (i32.const 17) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 4)) (i32.const 15))))
      (i32.store8 (i32.const 18) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 8)) (i32.const 15))))
      (i32.store8 (i32.const 19) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 12)) (i32.const 15))))
      (i32.store8 (i32.const 20) (i32.add (i32.const 97) (i32.and (i32.shr_u (local.get $n) (i32.const 16)) (i32.const 15))))
      (local.set $taken (i32.add (local.get $taken) (i32.eqz (call $metric (i32.const 0) (i32.const 16) (i32.const 5) (f64.const nan)))))
      (local.set $taken (i32.add (local.get $taken) (i32.eqz (call $metric (i32.const 0) (i32.const 16) (i32.const 5) (f64.const 1)))))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const 100000))))
    (if (i32.gt_u (local.get $taken) (i32.const 1000)) (then (unreachable)))
    (i64.const 0)))
