//! A proxy of the test's own on one machine, which cuts what passes through it at a chosen byte.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Where a connection ends: when that many more bytes have passed in that direction, whichever connection the last one is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Of what callers send. At 0 nothing more of the next message passes.
    Request(usize),
    /// Of what they are answered. At 0 the answer is on its way and none of it passes.
    Answer(usize),
}

/// A listener that passes everything on to one place; it goes with the test's process.
pub struct Proxy {
    address: Option<SocketAddr>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: Mutex<Option<Cut>>,
    cuts: AtomicUsize,
    requests: AtomicUsize,
    answers: AtomicUsize,
}

impl Proxy {
    /// In front of an HTTP server, on a free port: [`Proxy::address`].
    pub fn of_server(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::<State>::default();
        let relay = state.clone();
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                if let Ok(called) = TcpStream::connect(server) {
                    let _ = (caller.set_nodelay(true), called.set_nodelay(true));
                    connect(Wire::Tcp(caller), Wire::Tcp(called), &relay);
                }
            }
        });
        Proxy {
            address: Some(address),
            state,
        }
    }

    /// In front of the PostgreSQL whose socket is in the folder `server`, in a new folder `folder`.
    pub fn of_database(server: &str, folder: &Path) -> Proxy {
        const SOCKET: &str = ".s.PGSQL.5432";
        std::fs::create_dir(folder).expect("a new folder");
        let listener = UnixListener::bind(folder.join(SOCKET)).expect("a socket");
        let server = PathBuf::from(server).join(SOCKET);
        let state = Arc::<State>::default();
        let relay = state.clone();
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                if let Ok(called) = UnixStream::connect(&server) {
                    connect(Wire::Unix(caller), Wire::Unix(called), &relay);
                }
            }
        });
        Proxy {
            address: None,
            state,
        }
    }

    /// Where an HTTP server's clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("it is a server's")
    }

    /// One cut to come; it takes the place of one that has not come.
    pub fn cut(&self, cut: Cut) {
        *self.state.cut.lock().expect("no panic while it is held") = Some(cut);
    }

    /// How many have come.
    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Bytes that have passed: what was sent and what was answered.
    pub fn passed(&self) -> (usize, usize) {
        let of = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (of(&self.state.requests), of(&self.state.answers))
    }
}

enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    fn again(&self) -> io::Result<Wire> {
        Ok(match self {
            Wire::Tcp(stream) => Wire::Tcp(stream.try_clone()?),
            Wire::Unix(stream) => Wire::Unix(stream.try_clone()?),
        })
    }

    fn close(&self) {
        let _ = match self {
            Wire::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Wire::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => stream.read(buffer),
            Wire::Unix(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Tcp(stream) => stream.write_all(bytes),
            Wire::Unix(stream) => stream.write_all(bytes),
        }
    }
}

fn connect(caller: Wire, called: Wire, state: &Arc<State>) {
    let (Ok(caller_too), Ok(called_too)) = (caller.again(), called.again()) else {
        return;
    };
    let (requests, answers) = (state.clone(), state.clone());
    std::thread::spawn(move || pass(caller, called, true, &requests));
    std::thread::spawn(move || pass(called_too, caller_too, false, &answers));
}

/// Until one side is done: then both are.
fn pass(mut from: Wire, mut to: Wire, request: bool, state: &State) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let here = state.passing(request, read);
        if to.write_all(&buffer[..here.unwrap_or(read)]).is_err() {
            break;
        }
        if here.is_some() {
            // Before anybody can feel it.
            state.cuts.fetch_add(1, Ordering::SeqCst);
            break;
        }
    }
    from.close();
    to.close();
}

impl State {
    /// Counts bytes; some number where the cut comes after so many of them.
    fn passing(&self, request: bool, bytes: usize) -> Option<usize> {
        let count = if request {
            &self.requests
        } else {
            &self.answers
        };
        count.fetch_add(bytes, Ordering::SeqCst);
        let mut cut = self.cut.lock().expect("no panic while it is held");
        let left = match (&mut *cut, request) {
            (Some(Cut::Request(left)), true) | (Some(Cut::Answer(left)), false) => left,
            _ => return None,
        };
        if *left > bytes {
            *left -= bytes;
            return None;
        }
        let here = *left;
        *cut = None;
        Some(here)
    }
}
