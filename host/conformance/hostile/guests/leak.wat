;; Takes 64 pages more in each run, and traps once it is refused.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then (unreachable)))
    (i64.const 0)))
