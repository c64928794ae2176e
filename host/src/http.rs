//! What the controller answers over HTTP: `/metrics` on one port, `/healthz` and `/readyz` on the other.
//! What must not enter: what is measured, and what health is.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The longest head of a request that is read.
const LONGEST_HEAD: usize = 64 << 10;
/// How long a request and its answer may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What a path answers: status, content type, text. `None` for a path that is not there.
pub type Answer = Arc<dyn Fn(&str) -> Option<(StatusCode, &'static str, String)> + Send + Sync>;

/// Opens a port. Fails at once when it is taken, so that a start that cannot be probed is seen.
///
/// # Errors
/// When the port cannot be opened.
pub async fn open(port: u16, what: &str) -> anyhow::Result<TcpListener> {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let listener = match TcpListener::bind(any).await {
        // Machines without IPv6.
        Err(_) => TcpListener::bind(("0.0.0.0", port)).await,
        bound => bound,
    };
    listener.with_context(|| format!("cannot open port {port} for {what}; choose another port or end what listens there"))
}

/// Answers until the task is dropped.
pub async fn serve(listener: TcpListener, answer: Answer) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, as a rule: the next connection may find one.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let answer = Arc::clone(&answer);
        // Whoever asks and hangs up, or asks for ever, is no concern of ours.
        tokio::spawn(tokio::time::timeout(PATIENCE, reply(stream, answer)));
    }
}

/// Reads one request and answers it. Its body, if it has one, is not looked at.
async fn reply(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let path = loop {
        if head.len() > LONGEST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => break request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
            Ok(httparse::Status::Partial) => {}
            Err(_) => return Ok(()),
        }
    };
    // A scrape may take milliseconds of a core; others go on meanwhile.
    let found = tokio::task::spawn_blocking(move || answer(&path)).await.ok().flatten();
    let (status, kind, text) = found.unwrap_or((StatusCode::NOT_FOUND, "text/plain", "not found\n".to_owned()));
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        for part in request.as_bytes().chunks(7) {
            stream.write_all(part).await.expect("it reads");
        }
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.expect("it answers and closes");
        reply
    }

    #[tokio::test]
    async fn answers_what_it_knows_and_survives_what_it_does_not() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let answer: Answer = Arc::new(|path| (path == "/metrics").then(|| (StatusCode::OK, "text/plain", "up 1\n".to_owned())));
        tokio::spawn(serve(listener, answer));
        let reply = ask(port, "GET /metrics?x=1 HTTP/1.1\r\nhost: here\r\n\r\n").await;
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\nup 1\n"), "{reply}");
        assert!(ask(port, "GET /other HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
        assert_eq!(ask(port, "\0\0\0 what\r\n\r\n").await, "");
        assert!(ask(port, "GET /metrics HTTP/1.1\r\n\r\n").await.ends_with("up 1\n"), "it goes on");
    }
}
