//! What CapacityBuffers say of themselves.

use serde_json::{Value, json};
use whittle_cluster::api;
use whittle_cluster::write::{BufferFound, BufferStanding, FoundBase, Written, capacity_buffer_patch};

use super::fake::Fake;
use super::keeping::conditions;
use super::{at, golden, leading};

const BUFFER: &str = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/spare";

fn buffer() -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": { "name": "spare", "namespace": "shop", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "provisioningStrategy": "buffer.x-k8s.io/active-capacity", "podTemplateRef": { "name": "small" }, "replicas": 2 },
    })
}

fn found(count: u32, (ready, coming, missing): (u32, u32, u32)) -> BufferFound {
    let base = Some(FoundBase { name: "small".to_owned(), generation: 5 });
    BufferFound::Resolved { base, count, standing: Some(BufferStanding { ready, coming, missing }) }
}

fn unseen(base: Option<FoundBase>, count: u32) -> BufferFound {
    BufferFound::Resolved { base, count, standing: None }
}

fn live(fake: &Fake) -> api::CapacityBuffer {
    serde_json::from_value(fake.get(BUFFER).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_buffer_says_what_it_is_for_and_whether_there_is_room_once_each() {
    let fake = Fake::default();
    fake.put(BUFFER, buffer());
    let small = |generation| Some(FoundBase { name: "small".to_owned(), generation });
    let steps = [
        BufferFound::NoPodTemplate("PodTemplate small".to_owned()),
        unseen(small(5), 2),
        found(2, (0, 2, 0)),
        found(2, (1, 0, 1)),
        found(2, (2, 0, 0)),
        unseen(small(6), 3),
        found(0, (0, 0, 0)),
        BufferFound::Failed("spec.replicas: is below zero; write at least 0".to_owned()),
        unseen(None, 4),
        BufferFound::NoScalable("Deployment web".to_owned()),
    ];
    let mut told = Vec::new();
    for (second, step) in steps.iter().enumerate() {
        let second = i64::try_from(second).unwrap();
        let (writer, _gate) = leading(&fake);
        let patch = capacity_buffer_patch(&live(&fake), step, at(second)).unwrap_or_else(|| panic!("{step:?} is news"));
        fake.log();
        assert_eq!(writer.keep_capacity_buffer(&live(&fake).metadata, &patch).await.unwrap(), Written::Done);
        let log = fake.log();
        assert!(matches!(&log[..], [one] if one.starts_with(&format!("PATCH {BUFFER}/status?fieldManager=whittle"))), "{log:?}");
        assert_eq!(capacity_buffer_patch(&live(&fake), step, at(second + 100)), None, "{step:?} is not written twice");
        let status = fake.get(BUFFER).unwrap()["status"].clone();
        told.push(format!(
            "step {second}: replicas {} template {} generation {} strategy {}",
            status["replicas"], status["podTemplateRef"]["name"], status["podTemplateGeneration"], status["provisioningStrategy"]
        ));
        told.extend(conditions(&fake.get(BUFFER).unwrap()));
    }
    golden("buffer-conditions", &told);
}

#[test]
fn a_plan_for_another_size_says_nothing_of_this_one() {
    let mut live: api::CapacityBuffer = serde_json::from_value(buffer()).unwrap();
    let patched = capacity_buffer_patch(&live, &found(3, (2, 0, 0)), at(0)).unwrap().status.unwrap();
    let conditions = patched["status"]["conditions"].as_array().unwrap().clone();
    assert_eq!(conditions.iter().map(|c| c["type"].as_str().unwrap()).collect::<Vec<_>>(), ["ReadyForProvisioning"]);
    live.spec.provisioning_strategy = None;
    let patched = capacity_buffer_patch(&live, &found(3, (3, 0, 0)), at(0)).unwrap().status.unwrap();
    assert_eq!((&patched["status"]["provisioningStrategy"], &patched["status"]["replicas"]), (&Value::Null, &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_by_who_does_not_lead() {
    let fake = Fake::default();
    fake.put(BUFFER, buffer());
    let (writer, gate) = leading(&fake);
    gate.close();
    let patch = capacity_buffer_patch(&live(&fake), &found(2, (2, 0, 0)), at(0)).unwrap();
    assert!(writer.keep_capacity_buffer(&live(&fake).metadata, &patch).await.is_err());
    assert_eq!(fake.log(), [""; 0]);
}
