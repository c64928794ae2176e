//! What AWS says of instances that will not stay: the interruption queue, and the status checks.
//!
//! What must not enter: what follows from it.

mod message;
mod status;

use std::sync::Arc;

use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use whittle_model::Event;

use crate::{Aws, CloudError};

pub use status::{Problem, instance_problems};

/// SQS gives at most ten messages at once, and waits at most twenty seconds for the first.
const MESSAGES: i32 = 10;
const WAIT_SECONDS: i32 = 20;
/// A message that was received and not deleted comes again after this long.
const HIDDEN_SECONDS: i32 = 20;

/// The interruption queue.
#[derive(Debug)]
pub struct Queue {
    aws: Arc<Aws>,
    name: String,
    url: String,
}

/// Messages of one reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Messages {
    /// What they say, in order. An instance may be somebody else's: the queue hears of the whole account.
    pub events: Vec<Event>,
    /// How many said something else, and how many could not be read; both are deleted with the rest.
    pub other: usize,
    /// How many could not be read.
    pub garbage: usize,
    receipts: Vec<String>,
}

impl Messages {
    /// How many messages there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.receipts.len()
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.receipts.is_empty()
    }
}

impl Queue {
    /// The queue of this name, ARN or URL.
    ///
    /// # Errors
    /// When AWS does not know it, or may not say.
    pub async fn find(aws: Arc<Aws>, queue: &str) -> Result<Self, CloudError> {
        let (name, account) = parts(queue);
        let request = aws.sqs.get_queue_url().queue_name(name).set_queue_owner_aws_account_id(account.map(ToOwned::to_owned));
        let object = format!("of interruption queue {queue}");
        let answer = aws.call("GetQueueUrl", &object, || request.clone().send()).await?;
        let url = answer.queue_url().unwrap_or_default().to_owned();
        let name = name.to_owned();
        Ok(Self { aws, name, url })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits up to twenty seconds for messages. They come again unless they are [deleted](Self::delete) within twenty
    /// seconds.
    ///
    /// # Errors
    /// When the queue does not answer.
    pub async fn receive(&self) -> Result<Messages, CloudError> {
        let request = self
            .aws
            .sqs
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(MESSAGES)
            .wait_time_seconds(WAIT_SECONDS)
            .visibility_timeout(HIDDEN_SECONDS);
        let object = format!("of interruption queue {}", self.name);
        let answer = self.aws.call("ReceiveMessage", &object, || request.clone().send()).await?;
        let mut messages = Messages::default();
        for message in answer.messages() {
            match message::parse(message.body().unwrap_or_default()) {
                Ok(events) if events.is_empty() => messages.other += 1,
                Ok(events) => messages.events.extend(events),
                Err(garbage) => {
                    tracing::warn!(queue = self.name, error = %garbage, "a message of the interruption queue is no event");
                    messages.garbage += 1;
                }
            }
            messages.receipts.extend(message.receipt_handle().map(ToOwned::to_owned));
        }
        Ok(messages)
    }

    /// Deletes messages that were handled.
    ///
    /// # Errors
    /// When the queue does not answer. Messages it did not delete come again, which does no harm.
    pub async fn delete(&self, messages: &Messages) -> Result<(), CloudError> {
        if messages.receipts.is_empty() {
            return Ok(());
        }
        let entry = |(at, receipt): (usize, &String)| {
            DeleteMessageBatchRequestEntry::builder().id(at.to_string()).receipt_handle(receipt).build().ok()
        };
        let entries: Vec<_> = messages.receipts.iter().enumerate().filter_map(entry).collect();
        let request = self.aws.sqs.delete_message_batch().queue_url(&self.url).set_entries(Some(entries));
        let object = format!("of interruption queue {}", self.name);
        let answer = self.aws.call("DeleteMessageBatch", &object, || request.clone().send()).await?;
        for failed in answer.failed() {
            tracing::warn!(queue = self.name, code = failed.code(), "a handled message could not be deleted and comes again");
        }
        Ok(())
    }
}

/// Name and account of `name`, `arn:aws:sqs:REGION:ACCOUNT:NAME` or `https://HOST/ACCOUNT/NAME`.
fn parts(queue: &str) -> (&str, Option<&str>) {
    let separator = if queue.starts_with("arn:") { ':' } else { '/' };
    let mut from_the_end = queue.rsplit(separator);
    let name = from_the_end.next().unwrap_or(queue);
    (name, from_the_end.next().filter(|account| account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_may_be_given_by_name_arn_or_url() {
        for (given, name, account) in [
            ("demo", "demo", None),
            ("arn:aws:sqs:us-east-1:123456789012:demo", "demo", Some("123456789012")),
            ("https://sqs.us-east-1.amazonaws.com/123456789012/demo", "demo", Some("123456789012")),
        ] {
            assert_eq!(parts(given), (name, account));
        }
    }
}
