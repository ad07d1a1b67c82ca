;; A command: its runtime starts in _start, which the host never calls.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "_start"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) unreachable))
