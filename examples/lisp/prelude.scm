; What Scheme has, written in itself.

(define-syntax let
  (syntax-rules ()
    ((_ ((name value) ...) body ...) ((lambda (name ...) body ...) value ...))
    ((_ loop ((name value) ...) body ...) ((letrec ((loop (lambda (name ...) body ...))) loop) value ...))))

(define-syntax letrec
  (syntax-rules () ((_ ((name value) ...) body ...) ((lambda () (define name value) ... (let () body ...))))))
(define-syntax letrec*
  (syntax-rules () ((_ rest ...) (letrec rest ...))))

(define-syntax let*
  (syntax-rules ()
    ((_ () body ...) (let () body ...))
    ((_ (first rest ...) body ...) (let (first) (let* (rest ...) body ...)))))

(define-syntax and
  (syntax-rules () ((_) #t) ((_ last) last) ((_ test rest ...) (if test (and rest ...) #f))))
(define-syntax or
  (syntax-rules () ((_) #f) ((_ last) last) ((_ test rest ...) (let ((v test)) (if v v (or rest ...))))))
(define-syntax when
  (syntax-rules () ((_ test body ...) (if test (begin body ...)))))
(define-syntax unless
  (syntax-rules () ((_ test body ...) (if test (begin) (begin body ...)))))

(define-syntax cond
  (syntax-rules (else =>)
    ((_ (else body ...)) (begin body ...))
    ((_ (test => receiver) clause ...) (let ((v test)) (if v (receiver v) (cond clause ...))))
    ((_ (test) clause ...) (or test (cond clause ...)))
    ((_ (test body ...) clause ...) (if test (begin body ...) (cond clause ...)))
    ((_) (begin))))

(define-syntax case
  (syntax-rules ()
    ((_ key clause ...) (let ((k key)) (%case k clause ...)))))
(define-syntax %case
  (syntax-rules (else)
    ((_ k (else body ...)) (begin body ...))
    ((_ k ((datum ...) body ...) clause ...) (if (memv k '(datum ...)) (begin body ...) (%case k clause ...)))
    ((_ k) (begin))))

(define-syntax do
  (syntax-rules ()
    ((_ ((name start step ...) ...) (end result ...) body ...)
     (let loop ((name start) ...)
       (if end
           (begin result ...)
           (begin body ... (loop (%step name step ...) ...)))))))
(define-syntax %step
  (syntax-rules () ((_ name) name) ((_ name step) step)))

(define-syntax let-values
  (syntax-rules ()
    ((_ () body ...) (let () body ...))
    ((_ ((names producer) rest ...) body ...)
     (call-with-values (lambda () producer) (lambda names (let-values (rest ...) body ...))))))

(define-syntax parameterize
  (syntax-rules ()
    ((_ () body ...) (let () body ...))
    ((_ ((parameter value) rest ...) body ...)
     (%with-parameter parameter value (lambda () (parameterize (rest ...) body ...))))))

(define-syntax guard
  (syntax-rules ()
    ((_ (name clause ...) body ...)
     ((call/ec
        (lambda (leave)
          (with-exception-handler
            (lambda (condition)
              (leave (lambda () (let ((name condition)) (%guard-clauses condition clause ...)))))
            (lambda ()
              (let ((result (let () body ...)))
                (lambda () result))))))))))
(define-syntax %guard-clauses
  (syntax-rules (else)
    ((_ condition (else body ...)) (begin body ...))
    ((_ condition clause rest ...) (cond clause (else (%guard-clauses condition rest ...))))
    ((_ condition) (raise condition))))

(define-syntax assert
  (syntax-rules () ((_ test) (if test (begin) (error "assertion failed" 'test)))))

(define-syntax define-record-type
  (syntax-rules ()
    ((_ name (make field ...) is spec ...)
     (begin
       (define name (%record-type 'name '(spec ...)))
       (define make (%record-maker name '(field ...)))
       (define is (%record-test name))
       (%define-field name spec) ...))))
(define-syntax %define-field
  (syntax-rules ()
    ((_ type (field)) (begin))
    ((_ type (field get)) (define get (%record-getter type 'field)))
    ((_ type (field get set)) (begin (define get (%record-getter type 'field)) (define set (%record-setter type 'field))))))

(define-syntax delay
  (syntax-rules ()
    ((_ expression) (%make-promise (make-mutex) #f (lambda () expression)))))
(define-record-type promise (%make-promise mutex done value) promise?
  (mutex %promise-mutex) (done %promise-done %set-promise-done!) (value %promise-value %set-promise-value!))

; (select ((receive channel name) body ...) ((send channel value) body ...) ((after seconds) body ...) (else body ...))
; The first of the channels that is ready. What was received is the end-of-file object if the channel is closed.
(define-syntax select
  (syntax-rules () ((_ clause ...) (%select-clauses #f () () clause ...))))
(define-syntax %select-clauses
  (syntax-rules (receive send after else)
    ((_ time (case ...) (body ...) ((receive channel name) action ...) clause ...)
     (%select-clauses time (case ... (list channel)) (body ... (lambda (name) action ...)) clause ...))
    ((_ time (case ...) (body ...) ((receive channel) action ...) clause ...)
     (%select-clauses time (case ... (list channel)) (body ... (lambda (name) action ...)) clause ...))
    ((_ time (case ...) (body ...) ((send channel value) action ...) clause ...)
     (%select-clauses time (case ... (list channel value)) (body ... (lambda (name) action ...)) clause ...))
    ((_ time cases bodies ((after seconds) action ...) clause ...)
     (%select-clauses (seconds action ...) cases bodies clause ...))
    ((_ time cases bodies (else action ...))
     (%select-clauses (0 action ...) cases bodies))
    ((_ #f (case ...) (body ...))
     (let ((chosen (%select #f case ...)))
       ((list-ref (list body ...) (car chosen)) (cdr chosen))))
    ((_ (seconds action ...) (case ...) (body ...))
     (let ((chosen (%select seconds case ...)))
       (if (< (car chosen) 0)
           (begin action ...)
           ((list-ref (list body ...) (car chosen)) (cdr chosen)))))))

(define-syntax with-mutex
  (syntax-rules ()
    ((_ mutex body ...)
     (let ((m mutex))
       (dynamic-wind (lambda () (mutex-lock! m)) (lambda () body ...) (lambda () (mutex-unlock! m)))))))

(define (force promise)
  (with-mutex (%promise-mutex promise)
    (unless (%promise-done promise)
      (%set-promise-value! promise ((%promise-value promise)))
      (%set-promise-done! promise #t)))
  (%promise-value promise))

(define (caar x) (car (car x)))
(define (cadr x) (car (cdr x)))
(define (cdar x) (cdr (car x)))
(define (cddr x) (cdr (cdr x)))
(define (caddr x) (car (cddr x)))
(define (cdddr x) (cdr (cddr x)))
(define (list-ref items index) (car (list-tail items index)))
(define (zero? x) (= x 0))
(define (positive? x) (> x 0))
(define (negative? x) (< x 0))
(define (even? x) (= (modulo x 2) 0))
(define (odd? x) (= (modulo x 2) 1))
(define (abs x) (if (< x 0) (- x) x))
(define (square x) (* x x))
(define (max first . more) (fold-left (lambda (a b) (if (> b a) b a)) first more))
(define (min first . more) (fold-left (lambda (a b) (if (< b a) b a)) first more))
(define (gcd a b) (if (= b 0) (abs a) (gcd b (remainder a b))))
(define (char=? a b) (= (char->integer a) (char->integer b)))
(define (char<? a b) (< (char->integer a) (char->integer b)))
(define (string . characters) (list->string characters))
(define (string-null? text) (= (string-length text) 0))
(define call-with-current-continuation call/ec)
(define call/cc call/ec)

(define (fold-left combine value items)
  (if (null? items) value (fold-left combine (combine value (car items)) (cdr items))))
(define (fold-right combine value items)
  (fold-left (lambda (so-far item) (combine item so-far)) value (reverse items)))
(define (filter wanted? items)
  (reverse (fold-left (lambda (kept item) (if (wanted? item) (cons item kept) kept)) '() items)))
(define (%map1 f items)
  (let loop ((left items) (made '()))
    (if (null? left) (reverse made) (loop (cdr left) (cons (f (car left)) made)))))
(define (%any-null? lists) (and (pair? lists) (or (null? (car lists)) (%any-null? (cdr lists)))))
(define (map f items . more)
  (if (null? more)
      (%map1 f items)
      (let loop ((lists (cons items more)) (made '()))
        (if (%any-null? lists)
            (reverse made)
            (loop (%map1 cdr lists) (cons (apply f (%map1 car lists)) made))))))
(define (for-each f items . more)
  (cond ((pair? more) (apply map f items more) (begin))
        ((pair? items) (f (car items)) (for-each f (cdr items)))))
(define (list-copy items) (append items '()))
(define (iota count . start)
  (let loop ((i (- count 1)) (made '()))
    (if (< i 0) made (loop (- i 1) (cons (+ i (if (null? start) 0 (car start))) made)))))
(define (vector-map f items) (list->vector (map f (vector->list items))))
(define (vector-for-each f items) (for-each f (vector->list items)))
(define (vector-fill! items value)
  (do ((i 0 (+ i 1))) ((= i (vector-length items))) (vector-set! items i value)))
(define (string-for-each f text) (for-each f (string->list text)))
(define (string-join parts between)
  (if (null? parts)
      ""
      (apply string-append (car parts)
             (fold-right (lambda (part made) (cons between (cons part made))) '() (cdr parts)))))
(define (string-split text character)
  (let ((at (string-index text character)))
    (if at
        (cons (substring text 0 at) (string-split (substring text (+ at 1)) character))
        (list text))))
(define (%merge before? a b made)
  (cond ((null? a) (append (reverse made) b))
        ((null? b) (append (reverse made) a))
        ((before? (car b) (car a)) (%merge before? a (cdr b) (cons (car b) made)))
        (else (%merge before? (cdr a) b (cons (car a) made)))))
(define (sort items before?)
  (let ((size (length items)))
    (if (< size 2)
        items
        (let ((middle (quotient size 2)))
          (let take ((left items) (count middle) (head '()))
            (if (= count 0)
                (%merge before? (sort (reverse head) before?) (sort left before?) '())
                (take (cdr left) (- count 1) (cons (car left) head))))))))
(define (hash-table-keys table) (map car (hash-table->alist table)))
(define (hash-table-values table) (map cdr (hash-table->alist table)))
