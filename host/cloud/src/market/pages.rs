//! Answers that come in pages.

use std::future::Future;

use crate::error::{CloudError, ErrorKind};

/// Far above what any region has: 1,400 types make 14 pages, a region's spot prices about 20.
const MOST_PAGES: usize = 500;

/// A page, and the token of the next.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

/// The items of all pages, or nothing when one of them fails. A server that never comes to an end is an error.
pub(crate) async fn all<T, F>(action: &'static str, object: &str, mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>, CloudError>
where
    F: Future<Output = Result<Page<T>, CloudError>>,
{
    let mut items = Vec::new();
    let mut token = None;
    for _ in 0..MOST_PAGES {
        let found = page(token.clone()).await?;
        items.extend(found.items);
        // Some actions end with an empty token.
        let next = found.next.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(items);
        }
        if next == token {
            return Err(endless(action, object, "the answer names the page it is as the next"));
        }
        token = next;
    }
    Err(endless(action, object, &format!("the answer has more than {MOST_PAGES} pages")))
}

fn endless(action: &'static str, object: &str, why: &str) -> CloudError {
    CloudError::local(action, object, ErrorKind::Other, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads from a server whose page `n` (from 0) holds `n` and names what `next` says.
    async fn read(next: impl Fn(usize) -> Option<String>) -> Result<Vec<usize>, String> {
        let page = |token: Option<String>| {
            let at = token.map_or(0, |token| token.parse().unwrap());
            let found = if at == 99_999 {
                Err(CloudError::local("List", "it", ErrorKind::Other, "broken"))
            } else {
                Ok(Page { items: vec![at], next: next(at) })
            };
            async move { found }
        };
        all("List", "it", page).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn pages_are_read_to_the_end_and_never_for_ever() {
        let token = |n: usize| Some(n.to_string());
        assert_eq!(read(|_| None).await, Ok(vec![0]));
        assert_eq!(read(|n| if n < 3 { token(n + 1) } else { None }).await, Ok(vec![0, 1, 2, 3]));
        assert_eq!(read(|n| if n < 2 { token(n + 1) } else { Some(String::new()) }).await, Ok(vec![0, 1, 2]));
        assert_eq!(read(|n| token(n + 1)).await, Err("cannot List it: the answer has more than 500 pages".into()));
        assert_eq!(read(|_| token(1)).await, Err("cannot List it: the answer names the page it is as the next".into()));
        assert_eq!(read(|_| token(99_999)).await, Err("cannot List it: broken".into()), "nothing rather than a part");
    }
}
