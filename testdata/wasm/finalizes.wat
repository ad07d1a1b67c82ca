;; Finalizes objects: finalize succeeds unless the byte after "mode:" is 1, which
;; makes it unreachable. reconcile awaits a change. Requests arrive at 1024.
(module
  (memory (export "memory") 2)
  (data (i32.const 256) "mode:\00")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (select (i32.const 1024) (i32.const 0) (i32.lt_u (local.get $size) (i32.const 120000))))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0))
  (func (export "finalize") (param i32 i32) (result i64)
    (if (i32.eq (i32.load8_u (i32.const 261)) (i32.const 1)) (then (unreachable)))
    (i64.const 0)))
