;; Grows its memory by doubling and writes to every page, until it is refused.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (loop $again
      (if (i32.eq (memory.grow (memory.size)) (i32.const -1)) (then (unreachable)))
      (memory.fill (i32.const 0) (i32.const 170) (i32.shl (memory.size) (i32.const 16)))
      (br $again))
    (i64.const 0)))
