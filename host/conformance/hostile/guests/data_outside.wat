;; Has a data segment that does not lie in its memory.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 65530) "0123456789")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
