;; Exports the right names with the wrong types.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i64) (result i64) (i64.const 8))
  (func (export "reconcile") (param i32 i32) (result i32 i32) (i32.const 0) (i32.const 0))
  (func (export "_initialize") (param i32))
  (func (export "filter") (param i32 i32) (result f64) (f64.const 0)))
