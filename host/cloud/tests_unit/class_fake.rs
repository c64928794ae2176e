//! A server that answers like EC2, IAM and SSM from a table, and notes what it was asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::Aws;

/// What the table answers.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// What stands inside the answer's outermost element, or the JSON of SSM.
    Body(String),
    /// Status, code and message.
    Error(u16, String, String),
}

pub(super) fn body(text: &str) -> Reply {
    Reply::Body(text.to_owned())
}

pub(super) fn error(code: &str, message: &str) -> Reply {
    Reply::Error(400, code.to_owned(), message.to_owned())
}

/// One line of the table: the action, what its parameters must contain, the answer.
type Line = (String, String, Reply);

#[derive(Debug, Clone)]
pub(super) struct Fake {
    url: String,
    table: Arc<Mutex<Vec<Line>>>,
    calls: Arc<Mutex<Vec<(String, String)>>>,
}

impl Fake {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self { url, table: Arc::default(), calls: Arc::default() };
        let server = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { while_open(server, stream).await });
            }
        });
        fake
    }

    pub(super) async fn aws(&self) -> Aws {
        Aws::for_test(&self.url, "us-east-1").await.unwrap()
    }

    /// A line before all others.
    pub(super) fn set(&self, action: &str, contains: &str, reply: Reply) {
        self.table.lock().unwrap().insert(0, (action.to_owned(), contains.to_owned(), reply));
    }

    /// The actions since the last time, in alphabetical order, with how often each was called if more than once.
    pub(super) fn actions(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (action, _) in std::mem::take(&mut *self.calls.lock().unwrap()) {
            *counts.entry(action).or_default() += 1;
        }
        counts.into_iter().map(|(action, count)| if count == 1 { action } else { format!("{action} x{count}") }).collect()
    }

    /// The parameters of the calls of `action` since the last time that calls were taken.
    pub(super) fn calls_of(&self, action: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(of, _)| of == action).map(|(_, parameters)| parameters.clone()).collect()
    }

    fn answer(&self, action: &str, parameters: &str, json: bool) -> (u16, String) {
        self.calls.lock().unwrap().push((action.to_owned(), parameters.to_owned()));
        let table = self.table.lock().unwrap();
        let line = table.iter().find(|(of, contains, _)| of == action && parameters.contains(contains));
        let reply = line.map_or_else(|| error("NotInTheTable", action), |(_, _, reply)| reply.clone());
        match (reply, json) {
            (Reply::Body(body), true) => (200, body),
            (Reply::Body(body), false) => (200, format!("<{action}Response>{body}</{action}Response>")),
            (Reply::Error(status, code, message), true) => (status, format!(r#"{{"__type":"{code}","message":"{message}"}}"#)),
            (Reply::Error(status, code, message), false) => {
                let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
                // IAM's form and EC2's.
                let iam = action.contains("InstanceProfile");
                (
                    status,
                    if iam {
                        format!("<ErrorResponse>{error}</ErrorResponse>")
                    } else {
                        format!("<Response><Errors>{error}</Errors></Response>")
                    },
                )
            }
        }
    }
}

async fn while_open(server: Fake, stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    while let Some((target, body)) = request(&mut stream).await {
        let parameters = decoded(&body);
        let json = !target.is_empty();
        let action = match target.rsplit_once('.') {
            Some((_, action)) => action.to_owned(),
            None => parameters.split('&').find_map(|pair| pair.strip_prefix("Action=")).unwrap_or_default().to_owned(),
        };
        let (status, text) = server.answer(&action, &parameters, json);
        let kind = if json { "application/x-amz-json-1.1" } else { "text/xml" };
        let head = format!("HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len());
        if stream.write_all((head + &text).as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The target header, empty without one, and the body.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut target, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("x-amz-target") => target = value.to_owned(),
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok().map(|body| (target, body))
}

/// Without the percent signs of forms.
fn decoded(body: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = body.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, _) = match (first, hex) {
            (b'%', Some(byte)) => (&tail[2..], bytes.push(byte)),
            (b'+', _) => (tail, bytes.push(b' ')),
            (other, _) => (tail, bytes.push(*other)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
