;; Returns maps that nest 100,000 deep, all with the same key.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $result (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $at i32)
    (local.set $at (i32.const 100008))
    (drop (memory.grow (i32.const 8)))
    (loop $next
      (i32.store (local.get $at) (i32.const 0x0161a181)) ;; {"a":
      (local.set $at (i32.add (local.get $at) (i32.const 3)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 400008))))
    (call $result (i32.const 100008) (i32.const 300004))))
