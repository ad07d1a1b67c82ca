;; Judges each request in the same way: validate, default and convert return the
;; bytes after "verdict:" and their number, an i32. Two numbers are no lengths:
;; -1 is unreachable, -2 spins forever. reconcile awaits a change. Requests
;; arrive at 4096.
(module
  (memory (export "memory") 2)
  (data (i32.const 16) "verdict:\00\00\00\00"
    ;; Room for 512 bytes.
    "................................................................"
    "................................................................"
    "................................................................"
    "................................................................"
    "................................................................"
    "................................................................"
    "................................................................"
    "................................................................")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (local $pages i32)
    (local.set $pages
      (i32.shr_u (i32.add (local.get $size) (i32.const 69631)) (i32.const 16)))
    (if (i32.gt_u (local.get $pages) (memory.size))
      (then
        (if (i32.eq (memory.grow (i32.sub (local.get $pages) (memory.size))) (i32.const -1))
          (then (return (i32.const 0))))))
    (i32.const 4096))
  (func (export "reconcile") (param i32 i32) (result i64) (i64.const 0))
  (func $judge (param i32 i32) (result i64)
    (local $n i32)
    (local.set $n (i32.load (i32.const 24)))
    (if (i32.eq (local.get $n) (i32.const -1)) (then (unreachable)))
    (if (i32.eq (local.get $n) (i32.const -2)) (then (loop $forever (br $forever))))
    (i64.or (i64.shl (i64.const 28) (i64.const 32)) (i64.extend_i32_u (local.get $n))))
  (export "validate" (func $judge))
  (export "default" (func $judge))
  (export "convert" (func $judge)))
