;; Does in configure what the last byte of its settings says, which is the last
;; letter of the last value:
;;
;;   r refuses   t traps   s spins forever   b returns a result outside memory
;;   e returns an empty map   u traps, unless it is the instance's first call
;;
;; and accepts for any other. It counts the calls of configure as an i32 at 512,
;; and asks for all settings (the answer is kept at 600), cache_get and api_get
;; (the statuses are kept as i64 at 520 and 528). reconcile asks for a requeue in
;; as many ms as configure was called; map returns no keys.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "config_get" (func $config_get (type $op)))
  (import "reconciler_v1" "cache_get" (func $cache_get (type $op)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\80")
  (data (i32.const 32) "\81\a5error\83\a5class\a9permanent\a7message\aabad colour\a6reason\a6NoLuck")
  (data (i32.const 192) "\82\a6action\a7requeue\a8after_ms\00")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))

  (func $result (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32))
            (i64.extend_i32_u (local.get $len))))

  (func (export "configure") (param $ptr i32) (param $len i32) (result i64)
    (local $mode i32)
    (i32.store (i32.const 512) (i32.add (i32.load (i32.const 512)) (i32.const 1)))
    (i64.store (i32.const 520) (call $cache_get (i32.const 16) (i32.const 1) (i32.const 600) (i32.const 0)))
    (i64.store (i32.const 528) (call $api_get (i32.const 16) (i32.const 1) (i32.const 600) (i32.const 0)))
    (drop (call $config_get (i32.const 16) (i32.const 1) (i32.const 600) (i32.const 200)))
    (local.set $mode (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1))))
    (if (i32.eq (local.get $mode) (i32.const 114)) (then (return (call $result (i32.const 32) (i32.const 57)))))
    (if (i32.eq (local.get $mode) (i32.const 116)) (then (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 115)) (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $mode) (i32.const 98)) (then (return (call $result (i32.const 65530) (i32.const 16)))))
    (if (i32.eq (local.get $mode) (i32.const 101)) (then (return (call $result (i32.const 16) (i32.const 1)))))
    (if (i32.and (i32.eq (local.get $mode) (i32.const 117)) (i32.gt_u (i32.load (i32.const 512)) (i32.const 1)))
      (then (unreachable)))
    (i64.const 0))

  (func (export "map") (param i32 i32) (result i64) (i64.const 0))
  (func (export "reconcile") (param i32 i32) (result i64)
    (i32.store8 (i32.const 217) (i32.load (i32.const 512)))
    (call $result (i32.const 192) (i32.const 26))))
