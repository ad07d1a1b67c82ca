;; Grows its memory in its start function until it is refused, and then traps.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $start
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (unreachable))
  (start $start)
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
