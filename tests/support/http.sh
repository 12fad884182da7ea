# Shared by the tests of examples/http_server. Source it with the folder of the example programs as $1.
export PYTHONPATH=$(cd "$(dirname "$0")/../support" && pwd)
export PYTHONDONTWRITEBYTECODE=1
. "$PYTHONPATH/example.sh"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem 2>err || { cat err >&2; exit 1; }
export SSL_CERT_FILE=$scratch/cert.pem

# serve http|https ARGUMENT...: starts the server over the folder `site`; sets running, port and url.
serve() {
  scheme=$1
  shift
  [ $scheme = http ] || set -- --cert cert.pem --key key.pem "$@"
  rm -f out err  # see await
  "$programs/http_server" site --port 0 "$@" >out 2>err &
  running=$!
  await "listening on " out $running
  port=$(sed -n 's|^listening on .*:||p' out)
  url=$scheme://127.0.0.1:$port
}

# python NAME ARGUMENT...: runs the script on standard input, with an end to its patience.
python() {
  what=$1
  shift
  cat >script.py
  timeout 60 python3 -W ignore script.py "$url" "$running" "$@" || fail "$scheme, $what: status $?"
}
