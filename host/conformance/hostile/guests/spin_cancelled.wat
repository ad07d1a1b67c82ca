;; Asks for ever whether it is to stop, and how long it has.
(module
  (import "reconciler_v1" "cancelled" (func $cancelled (result i32)))
  (import "reconciler_v1" "budget" (func $budget (param i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $forever
      (drop (call $cancelled))
      (drop (call $budget (i32.const 0)))
      (br $forever))
    (i64.const 0)))
