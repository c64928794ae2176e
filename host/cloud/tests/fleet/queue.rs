//! The interruption queue.

use std::sync::{Arc, Mutex};

use whittle_cloud::{Aws, ErrorKind, queue::Queue};
use whittle_model::{Event, Interruption};

use super::server::{Reply, Request, serve};

/// A queue with these messages; what was deleted from it.
fn sqs(messages: &'static [&'static str]) -> (String, Arc<Mutex<Vec<String>>>) {
    let deleted: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = deleted.clone();
    let url = serve(move |request: &Request| {
        let asked: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        let json = |status, value: serde_json::Value| Reply::Whole(status, "application/x-amz-json-1.0", value.to_string());
        match request.headers["x-amz-target"].as_str() {
            "AmazonSQS.GetQueueUrl" if asked["QueueName"] == "demo" => json(200, serde_json::json!({"QueueUrl": "http://sqs/demo"})),
            "AmazonSQS.GetQueueUrl" => {
                json(400, serde_json::json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}))
            }
            "AmazonSQS.ReceiveMessage" => {
                let message = |(at, body): (usize, &&str)| serde_json::json!({"MessageId": at.to_string(), "ReceiptHandle": format!("r{at}"), "Body": body});
                json(200, serde_json::json!({"Messages": messages.iter().enumerate().map(message).collect::<Vec<_>>()}))
            }
            _ => {
                let entries = asked["Entries"].as_array().unwrap();
                kept.lock().unwrap().extend(entries.iter().map(|entry| entry["ReceiptHandle"].as_str().unwrap().to_owned()));
                json(200, serde_json::json!({"Successful": [], "Failed": []}))
            }
        }
    });
    (url, deleted)
}

const SPOT: &str = r#"{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"i-1"}}"#;
const STOPPED: &str =
    r#"{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-9","state":"stopped"}}"#;

#[tokio::test]
async fn garbage_and_strangers_are_survived_and_deleted() {
    let (url, deleted) = sqs(&["abcd", SPOT, "null", "{}", r#"{"source":"aws.ec2","detail-type":"Something New"}"#, SPOT, STOPPED]);
    let aws = Arc::new(Aws::for_test(&url, "us-east-1").await.unwrap());
    let queue = Queue::find(aws, "arn:aws:sqs:us-east-1:123456789012:demo").await.unwrap();
    assert_eq!(queue.name(), "demo");
    let messages = queue.receive().await.unwrap();
    let event = |id: &str, what| Event::Interrupted { provider_id: format!("aws:////{id}"), what };
    let spot = || event("i-1", Interruption::SpotInterrupted);
    assert_eq!(messages.events, [spot(), spot(), event("i-9", Interruption::InstanceStopped)]);
    assert_eq!((messages.len(), messages.garbage, messages.other), (7, 2, 2));
    queue.delete(&messages).await.unwrap();
    assert_eq!(*deleted.lock().unwrap(), ["r0", "r1", "r2", "r3", "r4", "r5", "r6"]);
}

#[tokio::test]
async fn an_absent_queue_is_said_to_be_absent() {
    let (url, _) = sqs(&[]);
    let aws = Arc::new(Aws::for_test(&url, "us-east-1").await.unwrap());
    let error = Queue::find(aws.clone(), "elsewhere").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.to_string().starts_with("cannot GetQueueUrl of interruption queue elsewhere: "), "{error}");
    let queue = Queue::find(aws, "demo").await.unwrap();
    let nothing = queue.receive().await.unwrap();
    assert!(nothing.is_empty());
    queue.delete(&nothing).await.unwrap();
}
