;; Traps while it is made.
(func $start (unreachable))
(start $start)
