;; Built for the next major version of the ABI only.
(module
  (import "reconciler_v2" "api_get" (func (param i64) (result i64)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_2"))
  (func (export "reconcile") (param i64) (result i64) (i64.const 0)))
