//! A small HTTP server: one thread a connection, answers made by a function.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

/// A request: headers in lower case, and the body.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// What to answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Status, content type and body.
    Whole(u16, &'static str, String),
    /// The connection breaks in the middle of the answer.
    Broken,
}

/// Serves on a free port until the process ends; answers its URL.
pub fn serve(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || converse(stream, &*answer));
        }
    });
    url
}

fn converse(stream: TcpStream, answer: &dyn Fn(&Request) -> Reply) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    while let Some(request) = read(&mut input) {
        let written = match answer(&request) {
            Reply::Whole(status, kind, body) => {
                write!(out, "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
            Reply::Broken => {
                let _ = write!(out, "HTTP/1.1 200 X\r\ncontent-type: text/xml\r\ncontent-length: 100\r\n\r\n<Half");
                return;
            }
        };
        if written.and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn read(input: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut request = Request::default();
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|read| *read > 0)?;
    loop {
        line.clear();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = request.headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}
