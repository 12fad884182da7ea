; The primes below N (2000), by a chain of fibers: each passes on what its prime does not divide.
(define limit (if (< (length (command-line)) 2) 2000 (string->number (cadr (command-line)))))

(define (filter-out prime from to)
  (let loop ((n (receive from)))
    (if (eof-object? n)
        (close to)
        (begin
          (unless (= (modulo n prime) 0) (send to n))
          (loop (receive from))))))

(define numbers (channel 16))
(spawn (lambda ()
         (do ((n 2 (+ n 1))) ((> n limit) (close numbers)) (send numbers n))))

(let loop ((from numbers) (count 0) (last 0))
  (let ((prime (receive from)))
    (if (eof-object? prime)
        (print count " primes, the last is " last)
        (let ((to (channel 16)))
          (spawn filter-out prime from to)
          (loop to (+ count 1) prime)))))
