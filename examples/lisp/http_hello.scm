; An HTTP server: http_hello.scm [PORT]. Each connection is a fiber, on any core.
(define port (if (< (length (command-line)) 2) 8080 (string->number (cadr (command-line)))))

(define (skip-headers client)
  (let ((line (tcp-read-line client)))
    (unless (or (eof-object? line) (string-null? line)) (skip-headers client))))

(define (respond client status body)
  (tcp-write client
             (format "HTTP/1.1 ~a\r\nContent-Type: text/plain\r\nContent-Length: ~a\r\n\r\n" status (string-length body))
             body))

; "GET /name HTTP/1.1"
(define (answer client request)
  (let ((words (string-split request #\space)))
    (cond ((not (= (length words) 3)) (respond client "400 Bad Request" "what?\n"))
          ((not (string=? (car words) "GET")) (respond client "405 Method Not Allowed" "only GET\n"))
          ((string=? (cadr words) "/") (respond client "200 OK" "Hello, world\n"))
          (else (respond client "200 OK" (format "Hello, ~a\n" (substring (cadr words) 1)))))))

(define (serve client)
  (guard (problem (#t #f)) ; a client that has gone
    (let loop ()
      (let ((request (tcp-read-line client)))
        (unless (eof-object? request)
          (skip-headers client)
          (answer client request)
          (loop)))))
  (tcp-close client))

(define listener (tcp-listen port))
(print "listening on " (tcp-port listener))
(flush-output-port)
(let loop ()
  (spawn serve (tcp-accept listener))
  (loop))
