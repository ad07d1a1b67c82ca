;; Traps where it is asked for a buffer.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (unreachable))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
