;; Asks for a column that no host has.
(data (i32.const 1024) "hostile0.1.0Misbehaves.{}candidatesrank-microns")
;; $texts is defined above
