;; Goes on asking for operations that its budget does not have.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $forever
      (drop (call $api_get (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (br $forever))
    (i64.const 0)))
