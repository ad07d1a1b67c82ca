;; Returns what its request brings along: each request ends with an object that
;; ends with n, an i32, and the n bytes before that are the result. filter
;; returns n itself. Two values of n are not lengths: -1 is unreachable, -2 spins
;; forever. It counts its calls as an i32 at 512. Requests arrive at 1024.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (local $pages i32)
    (local.set $pages
      (i32.shr_u (i32.add (local.get $size) (i32.const 66559)) (i32.const 16)))
    (if (i32.gt_u (local.get $pages) (memory.size))
      (then
        (if (i32.eq (memory.grow (i32.sub (local.get $pages) (memory.size))) (i32.const -1))
          (then (return (i32.const 0))))))
    (i32.const 1024))

  (func $n (param $ptr i32) (param $len i32) (result i32)
    (local $n i32)
    (i32.store (i32.const 512) (i32.add (i32.load (i32.const 512)) (i32.const 1)))
    (local.set $n (i32.load (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 4))))
    (if (i32.eq (local.get $n) (i32.const -1)) (then (unreachable)))
    (if (i32.eq (local.get $n) (i32.const -2)) (then (loop $forever (br $forever))))
    (local.get $n))

  (func $echo (param $ptr i32) (param $len i32) (result i64)
    (local $n i32)
    (local.set $n (call $n (local.get $ptr) (local.get $len)))
    (i64.or
      (i64.shl
        (i64.extend_i32_u
          (i32.sub (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 4)) (local.get $n)))
        (i64.const 32))
      (i64.extend_i32_u (local.get $n))))

  (export "reconcile" (func $echo))
  (export "finalize" (func $echo))
  (export "error_policy" (func $echo))
  (export "map" (func $echo))
  (export "validate" (func $echo))
  (export "default" (func $echo))
  (export "convert" (func $echo))
  (export "filter" (func $n)))
