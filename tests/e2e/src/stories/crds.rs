//! The definitions: what Karpenter's users have is taken, what is wrong is refused with words that name it.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use crate::stage::Stage;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let mut wrong = Vec::new();
    for file in manifests(stage, "good")? {
        let applied = stage.bed.kube.apply(&std::fs::read_to_string(&file)?);
        wrong.extend(applied.err().map(|why| format!("{} is refused: {why:#}", shown(&file))));
    }
    for file in manifests(stage, "bad")? {
        wrong.extend(is_refused(stage, &std::fs::read_to_string(&file)?).err().map(|why| format!("{}: {why:#}", shown(&file))));
    }
    for file in manifests(stage, "changes")? {
        wrong.extend(change_is_refused(stage, &std::fs::read_to_string(&file)?).err().map(|why| format!("{}: {why:#}", shown(&file))));
    }
    ensure!(wrong.is_empty(), "{} wrong answers:\n  {}", wrong.len(), wrong.join("\n  "));
    columns(stage)
}

fn shown(file: &std::path::Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn manifests(stage: &Stage<'_>, folder: &str) -> Result<Vec<PathBuf>> {
    let folder = stage.bed.repository("tests/e2e/fixtures/crds").join(folder);
    let mut files = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    ensure!(!files.is_empty(), "{} is empty", folder.display());
    Ok(files)
}

/// The first line of a wrong manifest says `# refused: WORDS`.
fn words(manifest: &str) -> Result<&str> {
    manifest.lines().next().and_then(|line| line.strip_prefix("# refused: ")).context("the first line does not say why it is refused")
}

fn is_refused(stage: &Stage<'_>, manifest: &str) -> Result<()> {
    let wanted = words(manifest)?;
    match stage.bed.kube.apply(manifest) {
        Ok(()) => bail!("it is accepted, although: {wanted}"),
        Err(why) => ensure!(why.to_string().contains(wanted), "it is refused without {wanted:?}: {why}"),
    }
    Ok(())
}

fn change_is_refused(stage: &Stage<'_>, manifests: &str) -> Result<()> {
    let wanted = words(manifests)?;
    let (before, after) = manifests.split_once("\n---\n").context("there are two manifests")?;
    stage.bed.kube.apply(before).context("before the change")?;
    is_refused(stage, &format!("# refused: {wanted}\n{after}"))
}

/// What `kubectl get` shows.
fn columns(stage: &Stage<'_>) -> Result<()> {
    for (kind, wanted) in [
        ("nodepools", "NAME NODECLASS NODES READY AGE"),
        ("nodepools -o wide", "NAME NODECLASS NODES READY AGE WEIGHT CPU MEMORY"),
        ("nodeclaims", "NAME TYPE CAPACITY ZONE NODE READY AGE"),
        ("nodeclaims -o wide", "NAME TYPE CAPACITY ZONE NODE READY AGE IMAGEID ID NODEPOOL NODECLASS DRIFTED"),
        ("ec2nodeclasses", "NAME READY AGE"),
        ("ec2nodeclasses -o wide", "NAME READY AGE ROLE"),
        ("ec2nc", "NAME READY AGE"),
        ("nodeoverlays", "NAME READY AGE"),
        ("overlays -o wide", "NAME READY AGE WEIGHT"),
    ] {
        let args: Vec<&str> = std::iter::once("get").chain(kind.split(' ')).collect();
        let table = stage.bed.kube.kubectl(&args)?;
        let head = table.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(head == wanted, "kubectl get {kind} shows {head:?}, Karpenter's shows {wanted:?}");
    }
    let policies = stage.bed.kube.kubectl(&["get", "scoringpolicies"])?;
    ensure!(
        policies.starts_with("NAME") && policies.contains("READY") && policies.contains("AGE"),
        "kubectl get scoringpolicies shows\n{policies}"
    );
    let all = stage.bed.kube.kubectl(&["get", "nodepools,nodeclaims,ec2nodeclasses,scoringpolicies"])?;
    ensure!(all.contains("nodepool.karpenter.sh/") && all.contains("scoringpolicy.whittle.sh/"), "kubectl get of all four shows\n{all}");
    for field in ["nodepool.spec.disruption.consolidateAfter", "ec2nodeclass.spec.metadataOptions", "scoringpolicy.spec.onFailure"] {
        let told = stage.bed.kube.kubectl(&["explain", field])?;
        ensure!(told.contains("DESCRIPTION:") && !told.contains("<empty>"), "kubectl explain {field} says\n{told}");
    }
    Ok(())
}
