; An HTTP server: http_hello.scm [PORT]. Each connection is a fiber, on any core.
(define port (if (< (length (command-line)) 2) 8080 (string->number (cadr (command-line)))))

; The fields that decide whether another request follows, with their last words; #f if the header has more than `left`
; lines.
(define (read-fields client found left)
  (let ((line (tcp-read-line client)))
    (cond ((or (eof-object? line) (string-null? line)) found)
          ((= left 0) #f)
          (else
            (let ((name (string-downcase (car (string-split line #\:)))))
              (read-fields client
                           (if (member name '("connection" "content-length" "transfer-encoding"))
                               (cons (cons name (car (reverse (string-split line #\space)))) found)
                               found)
                           (- left 1)))))))

; A close with unread input would reset the connection, so a small body is read.
(define (skip-body client fields)
  (let* ((field (and fields (assoc "content-length" fields)))
         (size (and field (string->number (cdr field)))))
    (let loop ((left (if (and size (integer? size) (<= size 1000000)) size 0)))
      (when (> left 0)
        (let ((part (tcp-read client left)))
          (unless (eof-object? part) (loop (- left (string-length part)))))))))

(define (respond client status fields body)
  (tcp-write client
             (format "HTTP/1.1 ~a\r\nContent-Type: text/plain\r\nContent-Length: ~a\r\n~a\r\n"
                     status (string-length body) fields)
             body))

; "GET", "/name" and the version
(define (answer client words fields)
  (cond ((not (= (length words) 3)) (respond client "400 Bad Request" fields "what?\n"))
        ((not (string=? (car words) "GET"))
         (respond client "405 Method Not Allowed" (string-append "Allow: GET\r\n" fields) "only GET\n"))
        ((string=? (cadr words) "/") (respond client "200 OK" fields "Hello, world\n"))
        (else (respond client "200 OK" fields (format "Hello, ~a\n" (substring (cadr words) 1))))))

; The connection is kept after a request of HTTP/1.1 that has no body and says nothing else.
(define (serve client)
  (guard (problem (#t #f)) ; a client that has gone
    (let loop ()
      (let ((request (tcp-read-line client)))
        (unless (eof-object? request)
          (let* ((words (string-split request #\space))
                 (fields (read-fields client '() 100))
                 (keeps (and (null? fields) (= (length words) 3) (string=? (list-ref words 2) "HTTP/1.1"))))
            (skip-body client fields)
            (if fields
                (answer client words (if keeps "" "Connection: close\r\n"))
                (respond client "431 Request Header Fields Too Large" "Connection: close\r\n" "too many fields\n"))
            (when keeps (loop)))))))
  (tcp-close client))

(define listener (tcp-listen port))
(print "listening on " (tcp-port listener))
(flush-output-port)
(let loop ()
  (spawn serve (tcp-accept listener))
  (loop))
