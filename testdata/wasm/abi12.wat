;; Declares two major versions; a host serves the newest that it has.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "reconciler_abi_2"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
