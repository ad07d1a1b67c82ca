;; A buffer that misbehaves by the size of the request, in units of 4096 bytes:
;; 0 good, 1 traps, 2 refuses, 3 not aligned, 4 outside memory, 5 the block does
;; not fit, 6 spins.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (local $mode i32)
    (local.set $mode (i32.shr_u (local.get $size) (i32.const 12)))
    (if (i32.eq (local.get $mode) (i32.const 1)) (then (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 2)) (then (return (i32.const 0))))
    (if (i32.eq (local.get $mode) (i32.const 3)) (then (return (i32.const 1028))))
    (if (i32.eq (local.get $mode) (i32.const 4)) (then (return (i32.const 0xfffffff8))))
    (if (i32.eq (local.get $mode) (i32.const 5)) (then (return (i32.const 65528))))
    (if (i32.eq (local.get $mode) (i32.const 6)) (then (loop $forever (br $forever))))
    (i32.const 1024))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0)))
