;; Misbehaves in nothing.
