;; Guests that do nothing but what metering makes dearer. Each export runs n rounds.
(module
  (memory (export "memory") 16)

  ;; Adds the numbers below n: three instructions of machine code a round.
  (func (export "tight") (param $n i32) (result i64)
    (local $i i32) (local $s i32)
    loop $again
      local.get $s  local.get $i  i32.add  local.set $s
      local.get $i  i32.const 1  i32.add  local.tee $i
      local.get $n  i32.lt_u  br_if $again
    end
    local.get $s  i64.extend_i32_u)

  ;; Reads and writes 64 KiB of memory, again and again.
  (func (export "memory_loop") (param $n i32) (result i64)
    (local $i i32) (local $s i32)
    loop $again
      local.get $i  i32.const 16383  i32.and  i32.const 2  i32.shl  i32.load
      local.get $s  i32.add  local.set $s
      local.get $i  i32.const 16383  i32.and  i32.const 2  i32.shl  local.get $s  i32.store
      local.get $i  i32.const 1  i32.add  local.tee $i
      local.get $n  i32.lt_u  br_if $again
    end
    local.get $s  i64.extend_i32_u)

  ;; The nth Fibonacci number, the slow way.
  (func $fib (param $n i32) (result i32)
    local.get $n  i32.const 2  i32.lt_u
    if (result i32)
      local.get $n
    else
      local.get $n  i32.const 1  i32.sub  call $fib
      local.get $n  i32.const 2  i32.sub  call $fib
      i32.add
    end)
  (func (export "fib") (param $n i32) (result i64)
    local.get $n  call $fib  i64.extend_i32_u)

  ;; Counts primes below n with a sieve: nested loops and branches.
  (func (export "sieve") (param $n i32) (result i64)
    (local $i i32) (local $j i32) (local $c i64)
    i32.const 0  i32.const 0  local.get $n  memory.fill
    i32.const 2  local.set $i
    block $done
      loop $next
        local.get $i  local.get $n  i32.ge_u  br_if $done
        local.get $i  i32.load8_u
        i32.eqz
        if
          local.get $c  i64.const 1  i64.add  local.set $c
          local.get $i  i32.const 1  i32.shl  local.set $j
          block $out
            loop $mark
              local.get $j  local.get $n  i32.ge_u  br_if $out
              local.get $j  i32.const 1  i32.store8
              local.get $j  local.get $i  i32.add  local.set $j
              br $mark
            end
          end
        end
        local.get $i  i32.const 1  i32.add  local.set $i
        br $next
      end
    end
    local.get $c))
