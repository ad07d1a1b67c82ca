;; Has an element segment that does not lie in its table, and calls what it would
;; have filled.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (table 1 funcref)
  (func $f)
  (elem (i32.const 0) $f $f)
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (call_indirect (i32.const 0))
    (i64.const 0)))
