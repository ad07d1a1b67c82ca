;; Logs a hundred thousand empty lines.
(module
  (import "reconciler_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $n i32)
    (loop $next
      (call $log (i32.const 8) (i32.const 0) (i32.const 0))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $n) (i32.const 100000))))
    (i64.const 0)))
