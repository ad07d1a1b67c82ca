;; Traps in _initialize.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "_initialize") (unreachable))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
