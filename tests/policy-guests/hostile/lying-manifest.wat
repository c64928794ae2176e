;; Calls something a config schema that is none.
(data (i32.const 1024) "hostile0.1.0Misbehaves.{[candidatesrank-micros")
;; $texts is defined above
