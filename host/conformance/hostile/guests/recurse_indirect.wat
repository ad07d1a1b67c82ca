;; Calls itself without end, through a table.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (type $f (func (param i32) (result i32)))
  (table funcref (elem $deeper))
  (func $deeper (type $f) (param $n i32) (result i32)
    (i32.add (call_indirect (type $f) (local.get $n) (i32.const 0)) (local.get $n)))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $deeper (i32.const 0)))
    (i64.const 0)))
