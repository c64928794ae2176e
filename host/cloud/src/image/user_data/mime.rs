//! MIME archives, as cloud-init reads them: parts with headers, between boundaries.
//!
//! Format: RFC 2046, section 5.1. What must not enter: what a part says.

use crate::image::ImageError;

/// Content type of a script.
pub(super) const SHELL: &str = "text/x-shellscript; charset=\"us-ascii\"";

/// One part of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Header lines as written.
    pub headers: Vec<String>,
    /// What it holds, without the line break before the next boundary.
    pub body: String,
}

impl Part {
    pub(super) fn new(content_type: &str, body: &str) -> Self {
        Self { headers: vec![format!("Content-Type: {content_type}")], body: body.to_owned() }
    }
}

/// Whether a text means to be an archive.
pub(super) fn is_archive(text: &str) -> bool {
    let begins = text.trim_start();
    begins.starts_with("MIME-Version:") || begins.starts_with("Content-Type:")
}

/// The parts of an archive.
pub(super) fn parse(text: &str) -> Result<Vec<Part>, ImageError> {
    let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('\r')).collect();
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let (headers, body) = header_block(&lines, blank)?;
    let content_type = headers
        .iter()
        .find_map(|(line, header)| content_type(header).map(|value| (*line, value)))
        .ok_or_else(|| wrong(blank, "an archive begins with a Content-Type header such as multipart/mixed; boundary=\"BOUNDARY\""))?;
    let (line, value) = content_type;
    if !value.trim_start().to_ascii_lowercase().starts_with("multipart/") {
        return Err(wrong(line, &format!("{:?} is no archive, its content type must be multipart/mixed", value.trim())));
    }
    let boundary = boundary(value).ok_or_else(|| wrong(line, "the content type names no boundary, add boundary=\"BOUNDARY\""))?;
    split(&lines, body, &boundary)
}

/// The header lines from line `from` on with their numbers, continuations joined, and the line after the blank one that ends them.
fn header_block(lines: &[&str], from: usize) -> Result<(Vec<(usize, String)>, usize), ImageError> {
    let mut headers: Vec<(usize, String)> = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(from) {
        if line.trim().is_empty() {
            return Ok((headers, at + 1));
        }
        match headers.last_mut() {
            Some((_, header)) if line.starts_with([' ', '\t']) => {
                header.push('\n');
                header.push_str(line);
            }
            _ if line.split_once(':').is_some_and(|(name, _)| !name.is_empty() && !name.contains([' ', '\t'])) => {
                headers.push((at, (*line).to_owned()));
            }
            _ => return Err(wrong(at, &format!("{line:?} is no header, it must be Name: value, and a blank line ends the headers"))),
        }
    }
    Err(wrong(lines.len().saturating_sub(1), "the text ends before the blank line that ends the headers"))
}

fn content_type(header: &str) -> Option<&str> {
    let (name, value) = header.split_once(':')?;
    name.eq_ignore_ascii_case("content-type").then_some(value)
}

/// The boundary that a content type names, quoted or not.
fn boundary(content_type: &str) -> Option<String> {
    let at = content_type.to_ascii_lowercase().find("boundary=")?;
    let value = &content_type[at + "boundary=".len()..];
    let text = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => value.split([';', ' ', '\t', '\n']).next()?,
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn split(lines: &[&str], body: usize, boundary: &str) -> Result<Vec<Part>, ImageError> {
    let (between, last) = (format!("--{boundary}"), format!("--{boundary}--"));
    let mut parts = Vec::new();
    let mut start = None;
    for (at, line) in lines.iter().enumerate().skip(body) {
        let end = line.trim_end() == last;
        if !end && line.trim_end() != between {
            continue;
        }
        if let Some(start) = start {
            parts.push(part(&lines[..at], start)?);
        }
        if end {
            return Ok(parts);
        }
        start = Some(at + 1);
    }
    Err(wrong(lines.len().saturating_sub(1), &format!("the archive is not closed, it must end with {last}")))
}

/// The part that begins at line `start` and ends with the lines.
fn part(lines: &[&str], start: usize) -> Result<Part, ImageError> {
    let (headers, body) = header_block(lines, start)?;
    Ok(Part { headers: headers.into_iter().map(|(_, header)| header).collect(), body: lines[body..].join("\n") })
}

fn wrong(index: usize, why: &str) -> ImageError {
    ImageError::Mime { line: index + 1, why: why.to_owned() }
}

/// The text of an archive.
pub(super) fn write(parts: &[Part]) -> String {
    let boundary = free_boundary(parts);
    let mut out = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n");
    for part in parts {
        out.push_str(&format!("\n--{boundary}\n"));
        for header in &part.headers {
            out.push_str(header);
            out.push('\n');
        }
        out.push('\n');
        out.push_str(&part.body.replace('\r', ""));
    }
    out.push_str(&format!("\n--{boundary}--\n"));
    out
}

/// A boundary that no part contains. A user's archive may use any.
fn free_boundary(parts: &[Part]) -> String {
    let used = |boundary: &str| parts.iter().any(|part| part.body.lines().any(|line| line.starts_with(&format!("--{boundary}"))));
    let mut boundary = "//".to_owned();
    while used(&boundary) {
        boundary.push('+');
    }
    boundary
}
