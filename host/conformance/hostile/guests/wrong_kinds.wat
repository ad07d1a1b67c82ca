;; Exports the right names with the wrong kinds.
(module
  (memory 1)
  (func (export "reconciler_abi_1"))
  (global (export "buffer") i32 (i32.const 8))
  (table (export "reconcile") 1 funcref)
  (func (export "memory"))
  (global (export "error_policy") i64 (i64.const 0)))
