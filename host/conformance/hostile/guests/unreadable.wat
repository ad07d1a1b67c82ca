;; Hands every operation bytes that are no request; traps where one is carried
;; out.
(module
  (import "reconciler_v1" "call" (func $call (param i32 i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\81\aaapiVersion\df\ff\ff\ff\ff\81\c1\c7\ff\d9\91\91\91\91")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $op i32) (local $n i32)
    (local.set $op (i32.const 1))
    (loop $ops
      (local.set $n (i32.const 0))
      (loop $bytes ;; more and more bytes of what is no msgpack
        (if (i64.ge_s (i64.shr_s (call $call (local.get $op) (i32.const 16) (local.get $n) (i32.const 4096) (i32.const 4096)) (i64.const 32)) (i64.const 0))
          (then (unreachable)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $bytes (i32.lt_u (local.get $n) (i32.const 30))))
      (local.set $op (i32.add (local.get $op) (i32.const 1)))
      (br_if $ops (i32.lt_s (local.get $op) (i32.const 11))))
    (i64.const 0)))
