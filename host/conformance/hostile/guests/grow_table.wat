;; Grows a table until it is refused, and then traps.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (table $t 0 funcref)
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $again (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 65536)) (i32.const -1))))
    (unreachable)))
