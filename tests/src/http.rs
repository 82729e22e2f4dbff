//! A small HTTP/1.1 client on a plain socket: it sends what it is given, bad paths and bad bytes included.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

/// One caller of one server: an address, a token, and a connection that is kept between requests.
pub struct Api {
    address: SocketAddr,
    token: Option<String>,
    connection: Mutex<Option<BufReader<TcpStream>>>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Api {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Api {
            address,
            token: token.map(str::to_string),
            connection: Mutex::new(None),
        }
    }

    /// The same caller by another way to the server.
    pub fn at(&self, address: SocketAddr) -> Self {
        Api::new(address, self.token.as_deref())
    }

    /// The same caller over a connection of its own.
    pub fn another(&self) -> Self {
        Api::new(self.address, self.token.as_deref())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    /// The body is JSON text, sent as it is: `json!({…}).to_string()`, or a text that is no JSON.
    pub fn put(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.request("PUT", path, &[], body.as_ref())
    }

    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.request("POST", path, &[], body.as_ref())
    }

    pub fn patch(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.request("PATCH", path, &[], body.as_ref())
    }

    /// Any request; a server that does not answer fails the test.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.try_request(method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: no answer: {error}"))
    }

    /// Any request; an error where no whole answer came. It is never sent twice.
    pub fn try_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut kept = self.connection.lock().expect("no panic while it is held");
        let mut connection = match kept.take() {
            Some(open) if still_open(open.get_ref()) => open,
            _ => connect(self.address)?,
        };
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if let Some(token) = &self.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        if !body.is_empty()
            && !headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            head += "Content-Type: application/json\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        // A server that refuses a large body answers before it has read it all.
        let sent = connection.get_mut().write_all(&message);
        let answer = read_answer(&mut connection, method == "HEAD");
        match (sent, answer) {
            (Ok(()), Ok(answer)) => {
                if answer
                    .header("connection")
                    .is_none_or(|value| !value.eq_ignore_ascii_case("close"))
                {
                    *kept = Some(connection);
                }
                Ok(answer)
            }
            (Err(_), Ok(answer)) => Ok(answer),
            (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error),
        }
    }
}

/// Sends bytes as they are over a new connection and reads one answer.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Answer> {
    let mut connection = connect(address)?;
    connection.get_mut().write_all(bytes)?;
    read_answer(&mut connection, false)
}

impl Answer {
    /// A header's first value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON: order of keys and digits of numbers as they came.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.text()))
    }

    /// Fails the test unless the status is this one; gives the body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// Fails the test unless it is this refusal; gives the body.
    #[track_caller]
    pub fn refused(&self, status: u16, error: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["error"], error, "{body}");
        body
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    Ok(BufReader::new(stream))
}

fn still_open(stream: &TcpStream) -> bool {
    let waiting = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    let open = matches!(waiting, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    open && stream.set_nonblocking(false).is_ok()
}

fn read_answer(connection: &mut BufReader<TcpStream>, bodyless: bool) -> io::Result<Answer> {
    let first = read_line(connection)?;
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| bad(&first))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad(&line))?;
        headers.push((name.to_string(), value.trim().to_string()));
    }
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    if status == 100 {
        return read_answer(connection, bodyless);
    }
    if bodyless || status == 204 || status == 304 {
        return Ok(answer);
    }
    if answer
        .header("transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    {
        loop {
            let line = read_line(connection)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| bad(&line))?;
            let mut chunk = vec![0; size];
            connection.read_exact(&mut chunk)?;
            answer.body.extend_from_slice(&chunk);
            read_line(connection)?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }
    match answer.header("content-length") {
        Some(length) => {
            answer.body = vec![0; length.parse().map_err(|_| bad(length))?];
            connection.read_exact(&mut answer.body)?;
        }
        None => {
            connection.read_to_end(&mut answer.body)?;
        }
    }
    Ok(answer)
}

fn read_line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_string())
}

fn bad(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not HTTP: {line}"))
}
