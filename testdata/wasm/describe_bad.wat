;; Describes itself with something that is no manifest.
(module
  (memory (export "memory") 1)
  (data (i32.const 16) "\93\01\02\03")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "describe") (result i64) (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 4)))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
