;; Calls a function through a table with another type.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (table funcref (elem $f))
  (func $f (param i32))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (call_indirect (result i64) (i32.const 0))))
