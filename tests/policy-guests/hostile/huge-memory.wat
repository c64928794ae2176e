;; Declares more memory than any policy is granted.
(memory (export "memory") 2048)
