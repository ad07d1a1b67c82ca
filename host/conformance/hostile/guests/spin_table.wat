;; Jumps for ever through a br_table and an indirect call.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (table funcref (elem $two))
  (func $two (result i32) (i32.const 2))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $forever
      (block $x (block $y (br_table $x $y $forever (call_indirect (result i32) (i32.const 0)))))
      (br $forever))
    (i64.const 0)))
