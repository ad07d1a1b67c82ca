;; Asks for an object, and is unreachable where it is there and nearly nothing.
(module
  (import "reconciler_v1" "api_get"
    (func $get (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 66)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (if (i64.lt_u
          (call $get (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 0))
          (i64.const 16))
      (then (unreachable)))
    (i64.const 0)))
