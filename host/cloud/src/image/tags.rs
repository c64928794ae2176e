//! Tags on what is made in AWS: what belongs to which cluster, NodePool, class and claim.
//!
//! What must not enter: calls that set them.

use std::collections::BTreeMap;

use whittle_model::keys;

use super::ImageError;

type Tags = BTreeMap<String, String>;

/// Tag: the cluster's name, on everything.
const CLUSTER: &str = "eks:eks-cluster-name";
/// Tag: what owns a resource, with the cluster's name behind.
const OWNED: &str = "kubernetes.io/cluster/";
/// Tag: the claim of an instance.
const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// Tag: what the console shows as the name.
const NAME: &str = "Name";

/// What something is launched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The EC2NodeClass.
    pub class: &'a str,
    /// The NodePool; empty for a claim of its own.
    pub pool: &'a str,
}

/// The tags of launch templates, fleets, instances, volumes, network interfaces and spot requests:
/// the user's, then ours.
///
/// # Errors
/// When the user sets tags that mark what belongs to a cluster.
pub fn launch_tags(user: Option<&Tags>, launched: Launched<'_>) -> Result<Tags, ImageError> {
    let mut tags = allowed(user)?;
    tags.insert(keys::NODE_POOL.to_owned(), launched.pool.to_owned());
    own(&mut tags, launched.cluster, launched.class);
    Ok(tags)
}

/// The tags of an instance profile.
///
/// # Errors
/// As [`launch_tags`].
pub fn profile_tags(user: Option<&Tags>, cluster: &str, class: &str, region: &str) -> Result<Tags, ImageError> {
    let mut tags = allowed(user)?;
    own(&mut tags, cluster, class);
    tags.insert(keys::REGION.to_owned(), region.to_owned());
    Ok(tags)
}

/// The tags that an instance gets once its node is registered, without those it has: what the user
/// named an instance stays.
#[must_use]
pub fn registration_tags(present: &Tags, cluster: &str, claim: &str, node: &str) -> Tags {
    [(NAME, node), (NODE_CLAIM, claim), (CLUSTER, cluster)]
        .into_iter()
        .filter(|(key, _)| !present.contains_key(*key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn own(tags: &mut Tags, cluster: &str, class: &str) {
    tags.insert(format!("{OWNED}{cluster}"), "owned".to_owned());
    tags.insert(CLUSTER.to_owned(), cluster.to_owned());
    tags.insert(keys::NODE_CLASS.to_owned(), class.to_owned());
}

fn allowed(user: Option<&Tags>) -> Result<Tags, ImageError> {
    let tags = user.cloned().unwrap_or_default();
    let refused: Vec<String> = tags.keys().filter(|key| restricted(key)).map(|key| format!("{key:?}")).collect();
    if refused.is_empty() { Ok(tags) } else { Err(ImageError::RestrictedTags(refused)) }
}

fn restricted(key: &str) -> bool {
    [CLUSTER, keys::NODE_POOL, keys::NODE_CLASS, NODE_CLAIM].contains(&key) || key.starts_with("kubernetes.io/cluster")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(keys: &[&str]) -> Tags {
        keys.iter().map(|key| ((*key).to_owned(), "mine".to_owned())).collect()
    }

    #[test]
    fn ours_are_added_to_the_users() -> Result<(), ImageError> {
        let tags = launch_tags(Some(&user(&["Name", "team"])), Launched { cluster: "c", class: "default", pool: "general" })?;
        let all: Vec<(&str, &str)> = tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            all,
            [
                ("Name", "mine"),
                ("eks:eks-cluster-name", "c"),
                ("karpenter.k8s.aws/ec2nodeclass", "default"),
                ("karpenter.sh/nodepool", "general"),
                ("kubernetes.io/cluster/c", "owned"),
                ("team", "mine"),
            ]
        );
        let profile = profile_tags(None, "c", "default", "eu-west-1")?;
        assert_eq!(profile.get(keys::REGION).map(String::as_str), Some("eu-west-1"));
        assert!(!profile.contains_key(keys::NODE_POOL));
        Ok(())
    }

    #[test]
    fn marks_of_the_cluster_are_refused_by_name() {
        for (key, refused) in [
            ("eks:eks-cluster-name", true),
            ("karpenter.sh/nodepool", true),
            ("karpenter.sh/nodeclaim", true),
            ("karpenter.k8s.aws/ec2nodeclass", true),
            ("kubernetes.io/cluster/other", true),
            ("karpenter.sh/else", false),
            ("kubernetes.io/created-for", false),
            ("Name", false),
        ] {
            let made = launch_tags(Some(&user(&[key, "fine"])), Launched { cluster: "c", class: "d", pool: "p" });
            assert_eq!(made.is_err(), refused, "{key}");
            if let Err(error) = made {
                assert_eq!(error.to_string(), format!("reading tags: {key:?} may not be set, they mark what belongs to the cluster"));
            }
        }
    }

    #[test]
    fn tags_that_an_instance_has_stay() {
        let keys = |tags: Tags| tags.into_keys().collect::<Vec<_>>();
        let all = registration_tags(&Tags::new(), "c", "claim-1", "ip-10-0-0-1");
        assert_eq!(all.get("Name").map(String::as_str), Some("ip-10-0-0-1"));
        assert_eq!(keys(all), ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim"]);
        let left = registration_tags(&user(&["Name", "eks:eks-cluster-name"]), "c", "claim-1", "ip-10-0-0-1");
        assert_eq!(keys(left), ["karpenter.sh/nodeclaim"]);
    }
}
