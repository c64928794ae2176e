//! Rust source as a flat row of tokens with their lines: what a rule needs to tell code from
//! comments and strings, and tests from the rest. No rule lives here.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::File;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What stands there; a string literal with its quotes, a bracket as its own token.
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Whether it belongs to an item under `#[cfg(test)]`, or to a file of tests.
    pub in_test: bool,
}

impl Token {
    /// The content when this is a plain or raw string literal.
    #[must_use]
    pub fn string(&self) -> Option<&str> {
        let inner = self.text.trim_start_matches('r').trim_matches('#');
        inner.strip_prefix('"')?.strip_suffix('"')
    }
}

/// The tokens of a file, comments left out; documentation comments are attributes and stay.
///
/// # Errors
/// When the text is no Rust, with the reason.
pub fn tokens(file: &File) -> Result<Vec<Token>, String> {
    let stream: TokenStream = file.text.parse().map_err(|e| format!("cannot be read as Rust: {e}"))?;
    let mut flat = Vec::new();
    flatten(stream, &mut flat);
    mark_tests(&mut flat);
    if file.is_test() {
        flat.iter_mut().for_each(|token| token.in_test = true);
    }
    Ok(flat)
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let token = |text: &str, line| Token { text: text.to_owned(), line, in_test: false };
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                into.push(token(open, line));
                flatten(group.stream(), into);
                into.push(token(close, group.span_close().end().line));
            }
            TokenTree::Ident(ident) => into.push(token(&ident.to_string(), line)),
            TokenTree::Punct(punct) => into.push(token(&punct.to_string(), line)),
            TokenTree::Literal(literal) => into.push(token(&literal.to_string(), line)),
        }
    }
}

/// Whether the tokens from `at` on read as `pattern`.
#[must_use]
pub fn reads(tokens: &[Token], at: usize, pattern: &[&str]) -> bool {
    tokens.len() >= at + pattern.len() && pattern.iter().zip(&tokens[at..]).all(|(wanted, token)| *wanted == token.text)
}

/// The index of the bracket that closes the one at `open`.
#[must_use]
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

/// Marks every item under `#[cfg(test)]`: from the attribute to its closing brace or semicolon.
fn mark_tests(tokens: &mut [Token]) {
    let mut at = 0;
    while at < tokens.len() {
        if !reads(tokens, at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at += 1;
            continue;
        }
        let mut end = at;
        while end < tokens.len() && tokens[end].text != ";" && tokens[end].text != "{" {
            end = if ["(", "["].contains(&tokens[end].text.as_str()) { closing(tokens, end) + 1 } else { end + 1 };
        }
        if end < tokens.len() && tokens[end].text == "{" {
            end = closing(tokens, end);
        }
        let end = end.min(tokens.len() - 1);
        tokens[at..=end].iter_mut().for_each(|token| token.in_test = true);
        at = end + 1;
    }
}

/// How many lines the file has without its items under `#[cfg(test)]`.
#[must_use]
pub fn lines_without_tests(file: &File, tokens: &[Token]) -> usize {
    let all = file.text.lines().count();
    let mut tested = 0;
    let mut at = 0;
    while at < tokens.len() {
        let run = tokens[at..].iter().take_while(|token| token.in_test).count();
        if run > 0 {
            tested += tokens[at + run - 1].line - tokens[at].line + 1;
        }
        at += run.max(1);
    }
    all - tested
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Doc.\n\nfn f() {} // unsafe\n\n#[cfg(test)]\n#[path = \"a.rs\"]\nmod tests;\n\n#[cfg(test)]\nmod more {\n    fn g() { \"unsafe\"; }\n}\n";

    #[test]
    fn comments_are_no_tokens_and_tests_are_marked() {
        let tokens = tokens(&File::new("src/a.rs", SOURCE)).unwrap();
        assert!(!tokens.iter().any(|t| t.text == "unsafe"));
        let of = |text: &str| tokens.iter().find(|t| t.text == text).map(|t| (t.line, t.in_test));
        assert_eq!((of("f"), of("tests"), of("g")), (Some((3, false)), Some((7, true)), Some((11, true))));
        assert_eq!(tokens.iter().filter_map(Token::string).next_back(), Some("unsafe"));
    }

    #[test]
    fn lines_of_tests_do_not_count() {
        let file = File::new("src/a.rs", SOURCE);
        assert_eq!(lines_without_tests(&file, &tokens(&file).unwrap()), 4);
    }

    #[test]
    fn a_file_of_tests_is_all_test() {
        let tokens = tokens(&File::new("host/engine/tests/a.rs", "fn f() {}")).unwrap();
        assert!(tokens.iter().all(|t| t.in_test));
    }

    #[test]
    fn what_is_no_rust_says_so() {
        assert!(tokens(&File::new("src/a.rs", "fn f( {}")).unwrap_err().contains("cannot be read as Rust"));
    }
}
