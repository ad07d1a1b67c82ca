;; Grows a table, which is no linear memory, until it is refused, and asks for a
;; requeue in as many ms as it has entries.
(module
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (data (i32.const 16) "\82\a6action\a7requeue\a8after_ms\ce\00\00\00\00")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64)
    (local $n i32)
    (loop $again
      (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 4095)) (i32.const -1))))
    (local.set $n (table.size $t))
    (i32.store8 (i32.const 42) (i32.shr_u (local.get $n) (i32.const 24)))
    (i32.store8 (i32.const 43) (i32.shr_u (local.get $n) (i32.const 16)))
    (i32.store8 (i32.const 44) (i32.shr_u (local.get $n) (i32.const 8)))
    (i32.store8 (i32.const 45) (local.get $n))
    (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 30))))
