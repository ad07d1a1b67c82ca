;; Traps in its start function.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0))
  (func $start (unreachable))
  (start $start))
