#!/usr/bin/python3
"""lisp_fibers: the language, its fibers under the collector, its server with real clients."""
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

PROGRAM = pathlib.Path(sys.argv[1]) / "lisp_fibers"
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "lisp"


def environment(workers):
    return {**os.environ, "ULEXITE_THREADS": str(workers)}


def run(script, *arguments, workers=4, typed=None):
    """Output, errors and exit status of a script, given as a path or as text."""
    with tempfile.NamedTemporaryFile("w", suffix=".scm") as file:
        if isinstance(script, str):
            file.write(script)
            file.flush()
            script = file.name
        command = [PROGRAM] if typed is not None else [PROGRAM, script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(workers), input=typed)
    return done.stdout, done.stderr, done.returncode


def expect(script, wanted, *arguments, workers=(1, 4)):
    for count in workers:
        out, err, code = run(script, *arguments, workers=count)
        assert (out, code) == (wanted, 0), f"with {count} workers: {out!r}, {err!r}, {code}; wanted {wanted!r}"


def expect_error(script, words):
    out, err, code = run(script)
    assert code == 1 and words in err, f"{out!r}, {err!r}, {code}; wanted {words!r}"


def language():
    """Each line: an expression, what `write` makes of its value."""
    cases = pathlib.Path(__file__).with_name("lisp_cases.txt").read_text().splitlines()
    cases = [line.rsplit(" => ", 1) for line in cases if line and not line.startswith(";")]
    script = "".join(f"(write (guard (e ((error-object? e) (list 'error (format \"~a\" e))) (#t (list 'raised e))) (eval '{code})))"
                     "(newline)\n" for code, _ in cases)
    out, err, code = run(script)
    lines = out.splitlines()
    for (expression, wanted), got in zip(cases, lines):
        assert got == wanted, f"{expression} is {got}; wanted {wanted}"
    assert len(lines) == len(cases) and code == 0, f"{len(lines)} of {len(cases)}: {err}"
    return len(cases)


def errors():
    expect_error("(car '())", "lisp: car: not a pair: ()")
    expect_error("(define (f) (g))\n(f)", "no variable has this name: g")
    expect_error("(print 1)\n(print (+ 1 2)", '.scm" 2')
    expect_error("(error \"because of\" 1 \"x\" 'y)", 'lisp: because of: 1 "x" y')
    expect_error("(raise 'something)", "lisp: something")
    out, err, code = run("(define gate (channel 1)) (define a (spawn (lambda () (receive gate) (join b))))"
                         "(define b (spawn (lambda () (join a)))) (send gate 1) (join a)")
    assert code == 1 and "fibers wait for each other in a circle" in err, (out, err, code)
    expect_error("(load \"/no/such/file\")", "No such file")
    # Handlers and after-thunks that use up the stack again.
    expect_error("(define (f) (with-exception-handler (lambda (c) 0) f)) (f)", "lisp: ")
    expect_error("(define (f) (+ 1 (with-exception-handler (lambda (c) (f)) f))) (f)", "lisp: recursion is too deep")
    expect_error("(define (down) (+ 1 (down))) (define (f) (dynamic-wind (lambda () 0) f down)) (f)", "recursion is too deep")
    # So does what is compiled, on the small stack of a fiber that is spawned.
    nest = "(define (nest wrap x) (fold-left (lambda (inside i) (wrap inside)) x (iota 20000)))"
    for made in ("(nest (lambda (x) (list 'begin x)) 1)", "(nest (lambda (x) (list 'define '(f) x)) '(define (f) 1))"):
        expect_error(f"{nest} (define made {made}) (join (spawn (lambda () (eval made))))", "recursion is too deep")
    # A pattern that no form has matched in part before its names are collected.
    expect_error(f"{nest} (define pattern (list '_ (nest (lambda (x) (list '_ x)) 'x) '...))"
                 "(join (spawn (lambda () (eval (list 'begin (list 'define-syntax 'm (list 'syntax-rules '() (list pattern 1)))"
                 " '(m))))))", "recursion is too deep")
    expect_error("#;" * 100000, "lists within lists, too deep")
    expect_error("(print 1)\n(\0", "a zero byte in a word")
    out, err, code = run(pathlib.Path("/no/such/script.scm"))
    assert code == 1 and "script.scm" in err, err
    assert run("(exit 7)")[2] == 7
    out, err, code = run("(define k #f) (call/ec (lambda (c) (set! k c))) (guard (e (#t (print e))) (k 1))"
                         "(spawn (lambda () (error \"alone\" 5))) (sleep 0.02) (do ((i 0 (+ i 1))) ((= i 20)) (collect))")
    assert "has returned already" in out and code == 0, (out, err, code)


def typed():
    out, err, code = run(None, typed="(define x 5)\n(+ x\n  1)\n(car x)\n\"a\\nb\" 'sym\n(spawn (lambda () 1)))\n(+ 1")
    wanted = ["6", "error: car: not a pair: 5", '"a\\nb"', "sym", "#<fiber>", "error: a ) without its (",
              "error: the input ends within an expression"]
    assert out.splitlines() == wanted and code == 0, (out, err, code)


FIBERS = """
(define (produce to n) (do ((i 0 (+ i 1))) ((= i n) 'done) (send to i)))
(define c (channel 4))
(define producers (map (lambda (i) (spawn produce c 500)) (iota 8)))
(define consumers (map (lambda (i) (spawn (lambda ()
  (let loop ((sum 0) (v (receive c))) (if (eof-object? v) sum (loop (+ sum v) (receive c))))))) (iota 4)))
(print (map join producers))
(close c)
(print (apply + (map join consumers)))

(define total 0)
(define m (make-mutex))
(for-each join (map (lambda (i) (spawn (lambda ()
  (do ((k 0 (+ k 1))) ((= k 200)) (with-mutex m (let ((seen total)) (yield) (set! total (+ seen 1)))))))) (iota 10)))
(print total)

(define sleeper (spawn (lambda () (guard (e ((error-object? e) (error-object-message e))) (sleep 1000)))))
(sleep 0.01)
(print (cancel sleeper) " " (join sleeper))
(print (guard (e ((error-object? e) (error-object-message e))) (join (spawn (lambda () (sleep 1000))) 0.01)))

(define a (channel)) (define b (channel)) (define quit (channel))
(define echo (spawn (lambda () (let loop ((n 0))
  (select ((receive a v) (send b (list 'a v)) (loop (+ n 1))) ((receive quit) n))))))
(print (map (lambda (i) (send a i) (receive b)) (iota 3)))
(close quit)
(print (join echo))
(print (select ((send (channel 1) 5) 'sent) ((after 10) 'late)))
(define shared (make-hash-table))
(for-each join (map (lambda (i) (spawn (lambda () (do ((k 0 (+ k 1))) ((= k 300)) (hash-table-set! shared (modulo k 50) k))))) (iota 8)))
(print (length (filter (lambda (k) (>= (hash-table-ref/default shared k -1) 250)) (iota 50))))
(define level (make-parameter 'outer))
(print (parameterize ((level 'inner)) (join (spawn (lambda () (level))))) " " (join (spawn (lambda () (level)))))
"""

# Parked fibers hold lists on their stacks, in channels, in closures, in results; others make garbage and collect.
STRESS = """
(define parked-count 2000)
(define gates (channel))
(define (check-list items n)
  (let loop ((i 0) (left items))
    (cond ((= i n) (null? left))
          ((not (equal? (car left) (list i (number->string i)))) #f)
          (else (loop (+ i 1) (cdr left))))))
(define (make n) (map (lambda (i) (list i (number->string i))) (iota n)))
(define (park n) (let ((mine (make n))) (receive gates) (list (check-list mine n) mine)))
(define parked (map (lambda (i) (spawn park (+ 1 (modulo i 20)))) (iota parked-count)))
(define stop #f)
(define collections 0)
(define mail (channel 64))
(define (churn) (let loop ((made 0)) (if stop made (let ((mine (make 10))) (send mail mine) (yield)
  (unless (check-list mine 10) (error "lost on a stack")) (loop (+ made 1))))))
(define (drain) (let loop ((n 0)) (let ((got (receive mail))) (if (eof-object? got) n
  (if (check-list got 10) (loop (+ n 1)) (error "lost in a channel"))))))
(define (short-lived) (let loop ((n 0)) (if stop n (let ((made (join (spawn make 5))))
  (unless (check-list made 5) (error "lost in a result")) (loop (+ n 1))))))
(define churners (map (lambda (i) (spawn churn)) (iota 4)))
(define drainers (map (lambda (i) (spawn drain)) (iota 4)))
(define starters (map (lambda (i) (spawn short-lived)) (iota 2)))
(define wanted (string->number (cadr (command-line))))
(do ((i 0 (+ i 1))) ((= i wanted)) (collect) (set! collections (+ collections 1)) (yield))
(set! stop #t)
(define made (apply + (map join churners)))
(close mail)
(define drained (apply + (map join drainers)))
(define started (apply + (map join starters)))
(do ((i 0 (+ i 1))) ((= i parked-count)) (send gates 'go))
(define (held-well? f) (let ((r (join f))) (and (car r) (pair? (cadr r)))))
(define good (length (filter held-well? parked)))
(print (= made drained) " " (= good parked-count) " " collections " " (> made 0) " " (> started 0))
"""


def stress(collections=30, workers=(1, 2, 4, 16)):
    for count in workers:
        out, err, code = run(STRESS, str(collections), workers=count)
        assert out == f"#t #t {collections} #t #t\n" and code == 0, f"with {count} workers: {out!r}, {err!r}, {code}"


# Each is deeper than the stack of a fiber that is spawned, though not than that of the main one, which has compiled it.
DEPTH = """
(define too-deep "recursion is too deep for this stack")
(define (try f) (join (spawn (lambda () (guard (e ((error-object? e) (error-object-message e))) (f) 'fine)))))
(define (nested n wrap) (fold-left (lambda (inside i) (wrap inside)) 1 (iota n)))
(define (procedure body) (eval (list 'lambda '() body)))
(define (same x) x)
(define wraps (list (lambda (x) (list '- x)) (lambda (x) (list 'same x)) (lambda (x) (list 'if x 1 2))
  (lambda (x) `(let ((v ,x)) v)) (lambda (x) `(let () ,x)) (lambda (x) `(begin 1 (+ 1 ,x)))))
(print (map (lambda (wrap) (try (procedure (nested 5 wrap)))) wraps))
(print (map (lambda (wrap) (equal? (try (procedure (nested 5000 wrap))) too-deep)) wraps))
(define flat (procedure (list 'quasiquote (iota 2000))))
(print (length (flat)) " " (equal? (try flat) too-deep))
(define (deep n) (nested n list))
(define a (deep 9000))
(define b (deep 9000))
(print (equal? a b) " " (equal? (try (lambda () (equal? a b))) too-deep))
(print (try (lambda () (eval (list 'quote (iota 20000))))) " " (try (lambda () (eval (list 'quote a)))))
(define (print-at depth) (if (= depth 0) (string-length (format "~a" a)) (+ 1 (print-at (- depth 1)))))
(print (try (lambda () (let ever ((depth 0)) (print-at depth) (ever (+ depth 20))))))
"""

# What fibers share changes while primitives walk over it.
RACES = """
(define (times n f) (do ((i 0 (+ i 1))) ((= i n)) (f i)))
(define (together . bodies) (for-each join (map spawn bodies)))
(define h (make-hash-table))
(define (change) (times 5000 (lambda (k) (hash-table-set! h (modulo k 4) k) (hash-table-delete! h (modulo k 4)))))
(together change change change change)
(print (hash-table-size h) " " (hash-table->alist h))
(define (fill from) (lambda () (times 500 (lambda (i) (hash-table-set! h (+ from i) i) (hash-table-set! h i 'all)))))
(together (fill 1000) (fill 2000) (fill 3000) (fill 4000))
(print (hash-table-size h) " " (length (hash-table->alist h)))
(define removed (map (lambda (i) (spawn (lambda () (length (filter (lambda (k) (hash-table-delete! h k)) (iota 5000)))))) (iota 4)))
(print (apply + (map join removed)) " " (hash-table-size h))

(define p (iota 8))
(define known (list (cons 1 2)))
(define stop #f)
(define (spoil) (unless stop (set-cdr! p 5) (set-cdr! p (list 1 2 3)) (set-car! known 5) (set-car! known (cons 1 2)) (spoil)))
(define spoiler (spawn spoil))
(define (try f) (lambda () (times 3000 (lambda (i) (guard (e (#t #f)) (f))))))
(together (try (lambda () (list->vector p))) (try (lambda () (append p p))) (try (lambda () (apply + p)))
          (try (lambda () (length p))) (try (lambda () (assq 1 known))) (try (lambda () (equal? p (iota 8)))))
(set! stop #t)
(join spoiler)
(print "no harm")
"""


def sockets():
    expect("""
(define listener (tcp-listen 0))
(define (echo client) (let loop () (let ((line (tcp-read-line client)))
  (if (eof-object? line) (tcp-close client) (begin (tcp-write client "<" line ">\\n") (loop))))))
(define server (spawn (lambda () (guard (e (#t 'closed)) (let loop () (spawn echo (tcp-accept listener)) (loop))))))
(define (talk i) (let ((s (tcp-connect "localhost" (tcp-port listener))))
  (define got (map (lambda (k) (tcp-write s (format "~a.~a\\r\\n" i k)) (tcp-read-line s)) (iota 20)))
  (tcp-close s) (guard (e (#t #f)) (tcp-read s) (error "read of what is closed")) got))
(define all (map (lambda (i) (spawn talk i)) (iota 30)))
(print (list-ref (join (list-ref all 29)) 19) " " (apply + (map (lambda (f) (length (join f))) all)))
(tcp-close listener)
(print (join server))
(print (guard (e (#t (list (error-object-message e) (error-object-irritants e)))) (tcp-connect "localhost" 1)))
""", "<29.19> 600\nclosed\n(tcp-connect: Connection refused (localhost))\n", workers=(1, 2, 4, 8))


def server():
    for workers in (1, 4):
        process = subprocess.Popen([PROGRAM, SCRIPTS / "http_hello.scm", "0"], stdout=subprocess.PIPE, env=environment(workers))
        try:
            port = int(re.search(rb"listening on (\d+)", process.stdout.readline())[1])
            failures = []

            def client(number):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                for i in range(50):
                    connection.request("GET", f"/{number}-{i}")
                    answer = connection.getresponse()
                    body = answer.read().decode()
                    if (answer.status, body) != (200, f"Hello, {number}-{i}\n"):
                        failures.append((answer.status, body))
                connection.close()

            clients = [threading.Thread(target=client, args=(i,)) for i in range(8)]
            for c in clients:
                c.start()
            for c in clients:
                c.join()
            assert not failures, failures[:3]
            done = subprocess.run(["curl", "-s", "-i", "-X", "PUT", f"http://127.0.0.1:{port}/"], capture_output=True, text=True)
            assert done.stdout.startswith("HTTP/1.1 405") and done.stdout.endswith("only GET\n"), done.stdout
            for request, fields in ((b"POST / HTTP/1.1\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n", "Allow: GET\r\n"),
                                    (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", ""), (b"GET / HTTP/1.0\r\n\r\n", "")):
                with socket.create_connection(("127.0.0.1", port), timeout=30) as last:
                    last.sendall(request)
                    said = last.makefile("rb").read().decode()
                assert said.count("HTTP/1.1 ") == 1 and fields in said and "Connection: close\r\n" in said, (request, said)
            for count, status in ((100, b"200"), (101, b"431")):  # more lines than it keeps
                with socket.create_connection(("127.0.0.1", port), timeout=10) as long:
                    long.sendall(b"GET / HTTP/1.1\r\n" + b"Connection: abc\r\n" * count + (b"\r\n" if count == 100 else b""))
                    said = long.makefile("rb").read()
                assert said.startswith(b"HTTP/1.1 " + status) and b"Connection: close\r\n" in said, (count, said)
            with socket.create_connection(("127.0.0.1", port)) as rude:
                rude.sendall(b"x" * 100000)  # a line that is too long: it is hung up on
                try:
                    while rude.recv(1000):
                        pass
                except ConnectionError:
                    pass
            done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/"], capture_output=True, text=True)
            assert done.stdout == "Hello, world\n", done.stdout
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:  # lisp.py FOLDER COLLECTIONS: only the stress, and longer
        stress(int(sys.argv[2]))
        sys.exit()
    count = language()
    errors()
    typed()
    expect(FIBERS, "(done done done done done done done done)\n998000\n2000\n#t sleep: the fiber was asked to stop\n"
           "join: the deadline of the call is over\n((a 0) (a 1) (a 2))\n3\nsent\n50\ninner outer\n", workers=(1, 2, 4, 8))
    expect(DEPTH, "(fine fine fine fine fine fine)\n(#t #t #t #t #t #t)\n2000 #t\n#t #t\nfine fine\n"
           "recursion is too deep for this stack\n", workers=(2,))
    expect(RACES, "0 ()\n2500 2500\n2500 0\nno harm\n", workers=(1, 2, 4, 8))
    expect(SCRIPTS / "sieve.scm", "303 primes, the last is 1999\n")
    expect(SCRIPTS / "sieve.scm", "25 primes, the last is 97\n", "100")
    sockets()
    server()
    stress()
    print(f"{count} expressions, and all else, as wanted")
