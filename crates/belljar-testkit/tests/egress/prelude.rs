//! What every attack begins with, in Python: the means to speak to anybody in any way, and to say whether it got through.

/// An attack ends with 0 if it got through and with 3 if it was stopped; anything else is a mistake in it.
pub(crate) const PRELUDE: &str = r#"
import os, socket, ssl, struct, sys, time
socket.setdefaulttimeout(8)
def stopped(*a):
    print(*a, file=sys.stderr); sys.exit(3)
def hook(kind, error, trace):
    if issubclass(kind, (OSError, EOFError)):
        print(kind, error, file=sys.stderr); sys.stderr.flush(); os._exit(3)
    sys.__excepthook__(kind, error, trace)
sys.excepthook = hook
def recv_all(s):
    data = b''
    while True:
        part = s.recv(65536)
        if not part: return data
        data += part
def recv_some(s):
    data = s.recv(65536)
    if not data: stopped('closed')
    return data
def http(to, port, request):
    s = socket.create_connection((to, port)); s.sendall(request)
    data = recv_some(s)
    print(data[:200], file=sys.stderr)
    if not data.startswith(b'HTTP/1.1 200'): stopped(data[:200])
    return data
def get(to, port=80, host=None):
    return http(to, port, b'GET / HTTP/1.1\r\nHost: ' + (host or to).encode() + b'\r\n\r\n')
def tls(to, port, name):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection((to, port)), server_hostname=name)
def gateway():
    for line in open('/etc/resolv.conf'):
        if line.startswith('nameserver'): return line.split()[1]
def question(name, kind=1, to=None, tcp=False):
    q = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00' + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\x00' + struct.pack('>HH', kind, 1)
    to = to or gateway()
    if tcp:
        s = socket.create_connection((to, 53)); s.sendall(struct.pack('>H', len(q)) + q); a = recv_some(s)[2:]
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, (to, 53)); a = s.recv(4096)
    return a[3] & 15, struct.unpack('>H', a[6:8])[0]
"#;
