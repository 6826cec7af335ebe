//! No way out over sockets of any kind.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::fixture::{Place, Who, err, out, words};

fn attempt(place: &Place, options: &[&str], program: &str, expected_bare: bool) {
    let guarded = place.guard(options).args(["python3", "-c", program]).output().unwrap();
    assert!(!words(&guarded).contains("ESCAPED") && guarded.status.code() != Some(125), "{:?} {program}: {}", place.who, words(&guarded));
    if expected_bare {
        let bare = place.bare("python3").args(["-c", program]).output().unwrap();
        assert!(words(&bare).contains("ESCAPED"), "{:?} {program}: {}", place.who, words(&bare));
    }
}

#[test]
fn no_tcp_no_udp_no_sockets_of_the_host() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect =
            format!("import socket; socket.create_connection(('127.0.0.1', {}), 5); print('ESCAPED')", tcp.local_addr().unwrap().port());
        attempt(&place, &[], &connect, true);

        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        udp.set_nonblocking(true).unwrap();
        let send = format!("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'question', ('127.0.0.1', {port}))");
        place.guard(&[]).args(["python3", "-c", &send]).output().unwrap();
        assert!(udp.recv(&mut [0; 16]).is_err(), "{who:?}: a datagram got out");
        place.bare("python3").args(["-c", &send]).output().unwrap();
        assert_eq!(udp.recv(&mut [0; 16]).unwrap(), 8);

        let name = format!("belljar-guard-test-{}-{who:?}", std::process::id());
        let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let connect = format!("import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('ESCAPED')");
        attempt(&place, &[], &connect, true);
    }
}

#[test]
fn sockets_on_disk_are_out_of_reach_in_the_tree_too() {
    for who in Who::BOTH {
        let place = Place::new(who);
        for directory in [place.outside(), place.tree()] {
            let path = directory.join("agent.sock");
            let _listener = UnixListener::bind(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
            let connect = format!("import socket; socket.socket(socket.AF_UNIX).connect('{}'); print('ESCAPED')", path.display());
            attempt(&place, &["--rw"], &connect, true);
        }
    }
}

#[test]
fn there_are_no_names_and_no_interfaces_but_the_own_loopback() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let listed = place.shell(&[], "tail -n +3 /proc/net/dev | cut -d: -f1; test -e /etc/resolv.conf && echo RESOLVER");
        assert_eq!(out(&listed), "lo", "{who:?}: {}", words(&listed));
        attempt(&place, &[], "import socket; socket.getaddrinfo('example.com', 80); print('ESCAPED')", false);
        let own = "import socket\ns=socket.create_server(('127.0.0.1',0)); socket.create_connection(s.getsockname(), 5); print('served')";
        let served = place.guard(&[]).args(["python3", "-c", own]).output().unwrap();
        assert_eq!(out(&served), "served", "{who:?}: {}", words(&served));
    }
}

#[test]
fn the_hosts_network_must_be_asked_for_and_is_warned_of() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect =
            format!("import socket; socket.create_connection(('127.0.0.1', {}), 5); print('CONNECTED')", tcp.local_addr().unwrap().port());
        let guarded = place.guard(&["--net", "host"]).args(["python3", "-c", &connect]).output().unwrap();
        assert_eq!(out(&guarded), "CONNECTED", "{who:?}: {}", words(&guarded));
        assert!(err(&guarded).contains("warning: --net host"), "{who:?}: {}", words(&guarded));
    }
}
