//! A server on this machine that answers as a test says.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Status and body for an action and the body it was asked with.
type Answer = dyn Fn(&str, &str) -> (u16, String) + Send + Sync;

pub(super) struct Server {
    pub(super) url: String,
    /// Action and body of every request so far.
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&str, &str) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer): (_, Arc<Answer>) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&answer)));
            }
        });
        Self { url, asked }
    }

    /// Bodies of the requests for `action`.
    pub(super) fn asked(&self, action: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(name, _)| name == action).map(|(_, body)| body.clone()).collect()
    }
}

async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<(String, String)>>>, answer: Arc<Answer>) {
    while let Some((head, body)) = request(&mut stream).await {
        let target = head.lines().find_map(|line| line.to_lowercase().starts_with("x-amz-target:").then(|| line.rsplit('.').next()));
        let form = body.split('&').find_map(|pair| pair.strip_prefix("Action="));
        let action = target.flatten().or(form).unwrap_or_default().trim().to_owned();
        log.lock().unwrap().push((action.clone(), body.clone()));
        let (status, text) = answer(&action, &body);
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\ncontent-type: text/xml\r\n\r\n", text.len());
        stream.write_all(format!("{head}{text}").as_bytes()).await.unwrap();
    }
}

/// Head and body; `None` when the client has gone.
async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            if body.len() >= length.unwrap_or_default() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}
