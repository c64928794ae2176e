//! The controller's role may not do what an EC2NodeClass needs: the class says so, and nothing is launched.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::kube::{CLASSES, condition, text};
use crate::stage::Stage;
use crate::wait::{stays, until};

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let _controller = stage.controller()?;
    let class = format!("{CLASSES}/default");
    for action in ["CreateFleet", "RunInstances", "CreateLaunchTemplate"] {
        let fault = json!({ "action": action, "n": 1000, "code": "UnauthorizedOperation", "status": "403 Forbidden" });
        stage.bed.aws.told(&json!({ "zero": true, "faults": [fault] }))?;
        stage.apply(include_str!("../../manifests/walk-through.yaml"))?;
        stage.apply(include_str!("../../manifests/inflate.yaml"))?;
        stage.bed.kube.scale("inflate", 5)?;
        until(&format!("the class says that {action} is not allowed"), 60, || {
            let class = stage.bed.kube.get(&class)?;
            let valid = condition(&class, "ValidationSucceeded").context("there is no condition ValidationSucceeded")?;
            let reason = format!("{action}AuthCheckFailed");
            ensure!(valid["status"] == "False" && text(valid, "/reason") == reason, "{valid}");
            let ready = condition(&class, "Ready").context("there is no condition Ready")?;
            ensure!(ready["status"] == "False", "{ready}");
            Ok(())
        })?;
        stays("nothing is launched", 3, || stage.is_empty())?;
        stage.bed.kube.kubectl(&["delete", "deployment/inflate", "nodepool/default", "ec2nodeclass/default", "--timeout=60s"])?;
    }
    Ok(())
}
