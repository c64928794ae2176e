//! Instance profiles: the managed one of a class that names a role, and whether one that a class names is there.
//! Each role of a class has a profile of its own, named by a hash: whoever comes here twice, or after a crash, finds the
//! profile that was made before instead of making another.
//!
//! What must not enter: policies, and what instances may do.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_iam::types::Tag;
use sha2::{Digest, Sha256};
use whittle_model::{Duration, Timestamp};

use super::{cache::Cache, resolved::ClassInput};
use crate::{Aws, CloudError, ErrorKind, image};

const KNOWN: Duration = Duration::minutes(15);
/// A profile that could not be made is not tried again sooner: a missing role is not made by asking.
const GUARD: Duration = Duration::minutes(1);
/// A profile that went out of use may be named by claims that are just being written.
const PROTECTED: Duration = Duration::minutes(60);

/// Instance profiles that are known.
#[derive(Debug)]
pub(super) struct Profiles {
    cluster: String,
    /// The role of each profile that exists; empty when it has none.
    roles: Cache<String>,
    failed: Cache<CloudError>,
    protected: Cache<()>,
}

impl Profiles {
    pub(super) fn new(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), roles: Cache::default(), failed: Cache::default(), protected: Cache::default() }
    }

    /// The managed profile of the class for `role`, made if it is not there. The profile of the status is kept while it
    /// has this role.
    pub(super) async fn ensure(&self, aws: &Aws, class: &ClassInput, role: &str, now: Timestamp) -> Result<String, CloudError> {
        let role = last_segment(role);
        if let Some(current) = &class.status_profile
            && self.role(aws, current, now).await?.as_deref() == Some(role)
        {
            return Ok(current.clone());
        }
        let guard = format!("{} {role}", class.uid);
        if let Some(error) = self.failed.fresh(&guard, now) {
            return Err(error);
        }
        let name = self.name(&aws.region, class, role);
        if let Err(error) = self.make(aws, class, &name, role, now).await {
            self.failed.put(&guard, error.clone(), now, GUARD);
            return Err(error);
        }
        self.roles.put(&name, role.to_owned(), now, KNOWN);
        for profile in class.status_profile.iter().chain([&name]) {
            self.protect(profile, now);
        }
        Ok(name)
    }

    /// Keeps a profile from being collected for an hour.
    pub(super) fn protect(&self, profile: &str, now: Timestamp) {
        self.protected.put(profile, (), now, PROTECTED);
    }

    /// The role of a profile, empty when it has none; `None` when the profile does not exist.
    pub(super) async fn role(&self, aws: &Aws, profile: &str, now: Timestamp) -> Result<Option<String>, CloudError> {
        if let Some(role) = self.roles.fresh(profile, now) {
            return Ok(Some(role));
        }
        let role = match read_role(aws, profile).await {
            Ok(role) => role,
            // What was so lately is so.
            Err(error) => return self.roles.last(profile).map(Some).ok_or(error),
        };
        match &role {
            Some(role) => self.roles.put(profile, role.clone(), now, KNOWN),
            None => self.roles.forget(profile),
        }
        Ok(role)
    }

    /// Forgets what is known of a profile: EC2 says that it is not there.
    pub(super) fn doubt(&self, profile: &str) {
        self.roles.forget(profile);
    }

    async fn make(&self, aws: &Aws, class: &ClassInput, name: &str, role: &str, now: Timestamp) -> Result<(), CloudError> {
        let there = self.role(aws, name, now).await?;
        let made = there.is_none() && create(aws, class, name, &self.path(&aws.region, &class.uid), &self.tags(aws, class)).await?;
        let attached = match there.as_deref() {
            Some(other) if other == role => return Ok(()),
            Some("") | None => attach(aws, name, role).await,
            Some(other) => {
                detach(aws, name, other).await?;
                attach(aws, name, role).await
            }
        };
        if attached.is_err() && made {
            // An empty profile is of no use; should this fail too, the collection finds it by its path.
            let _ = delete(aws, name).await;
        }
        attached
    }

    /// Deletes all managed profiles of a class that is gone.
    pub(super) async fn delete_of_class(&self, aws: &Aws, class: &str, uid: &str) -> Result<(), CloudError> {
        for name in list(aws, &self.path(&aws.region, uid)).await? {
            self.delete(aws, &name).await?;
        }
        // Before version 1.7 Karpenter named one profile by region and class, outside of any path.
        self.delete(aws, &format!("{}_{}", self.cluster, fnv1(&format!("{}{class}", aws.region)))).await
    }

    /// Deletes the managed profiles of the cluster that are neither in use nor went out of use lately. Returns their names.
    pub(super) async fn collect(&self, aws: &Aws, in_use: &BTreeSet<String>, now: Timestamp) -> Result<Vec<String>, CloudError> {
        let mut deleted = Vec::new();
        for name in list(aws, &format!("/karpenter/{}/{}/", aws.region, self.cluster)).await? {
            if !in_use.contains(&name) && self.protected.fresh(&name, now).is_none() {
                self.delete(aws, &name).await?;
                deleted.push(name);
            }
        }
        Ok(deleted)
    }

    async fn delete(&self, aws: &Aws, name: &str) -> Result<(), CloudError> {
        delete(aws, name).await?;
        self.roles.forget(name);
        self.protected.forget(name);
        Ok(())
    }

    fn path(&self, region: &str, uid: &str) -> String {
        format!("/karpenter/{region}/{}/{uid}/", self.cluster)
    }

    fn name(&self, region: &str, class: &ClassInput, role: &str) -> String {
        let digest = Sha256::digest(format!("{region} {} {} {role}", class.name, class.uid));
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        format!("{}_{number}", self.cluster)
    }

    fn tags(&self, aws: &Aws, class: &ClassInput) -> BTreeMap<String, String> {
        let tags = |user| image::profile_tags(user, &self.cluster, &class.name, &aws.region);
        // Tags that may not be set are for the validation to refuse.
        tags(class.spec.tags.as_ref()).or_else(|_| tags(None)).unwrap_or_default()
    }
}

/// Roles are attached by their name alone, but may be written with their path.
fn last_segment(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

/// FNV-1 of 64 bits. <http://www.isthe.com/chongo/tech/comp/fnv/>
fn fnv1(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte))
}

async fn read_role(aws: &Aws, profile: &str) -> Result<Option<String>, CloudError> {
    let request = aws.iam.get_instance_profile().instance_profile_name(profile);
    match aws.call("GetInstanceProfile", profile, || request.clone().send()).await {
        Ok(answer) => {
            let roles = answer.instance_profile().map_or(&[][..], |profile| profile.roles());
            Ok(Some(roles.first().map(|role| role.role_name().to_owned()).unwrap_or_default()))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it was made here; another may have been quicker.
async fn create(aws: &Aws, class: &ClassInput, name: &str, path: &str, tags: &BTreeMap<String, String>) -> Result<bool, CloudError> {
    let object = format!("{name} for EC2NodeClass {}", class.name);
    let tag = |(key, value): (&String, &String)| {
        Tag::builder().key(key).value(value).build().map_err(|error| {
            CloudError::local("CreateInstanceProfile", &object, ErrorKind::Configuration, format!("a tag is incomplete: {error}"))
        })
    };
    let tags = tags.iter().map(tag).collect::<Result<Vec<Tag>, CloudError>>()?;
    let request = aws.iam.create_instance_profile().instance_profile_name(name).path(path).set_tags(Some(tags));
    match aws.call("CreateInstanceProfile", &object, || request.clone().send()).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

async fn attach(aws: &Aws, name: &str, role: &str) -> Result<(), CloudError> {
    let request = aws.iam.add_role_to_instance_profile().instance_profile_name(name).role_name(role);
    let added = aws.call("AddRoleToInstanceProfile", &format!("role {role} to {name}"), || request.clone().send()).await;
    match added {
        Ok(_) => Ok(()),
        // A profile holds one role: another was quicker, perhaps with the same one.
        Err(error) if error.code == "LimitExceeded" && read_role(aws, name).await?.as_deref() == Some(role) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn detach(aws: &Aws, name: &str, role: &str) -> Result<(), CloudError> {
    let request = aws.iam.remove_role_from_instance_profile().instance_profile_name(name).role_name(role);
    gone(aws.call("RemoveRoleFromInstanceProfile", &format!("role {role} from {name}"), || request.clone().send()).await)
}

async fn delete(aws: &Aws, name: &str) -> Result<(), CloudError> {
    match read_role(aws, name).await? {
        None => return Ok(()),
        Some(role) if role.is_empty() => {}
        Some(role) => detach(aws, name, &role).await?,
    }
    let request = aws.iam.delete_instance_profile().instance_profile_name(name);
    gone(aws.call("DeleteInstanceProfile", name, || request.clone().send()).await)
}

fn gone<T>(answer: Result<T, CloudError>) -> Result<(), CloudError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

async fn list(aws: &Aws, path: &str) -> Result<Vec<String>, CloudError> {
    let mut names = Vec::new();
    let mut marker = None;
    loop {
        let request = aws.iam.list_instance_profiles().path_prefix(path).set_marker(marker.take());
        let page = aws.call("ListInstanceProfiles", &format!("under {path}"), || request.clone().send()).await?;
        names.extend(page.instance_profiles().iter().map(|profile| profile.instance_profile_name().to_owned()));
        marker = page.marker().filter(|marker| page.is_truncated() && !marker.is_empty()).map(ToOwned::to_owned);
        if marker.is_none() {
            return Ok(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_old_names_is_fnv_1() {
        // From the test vectors of Go's hash/fnv.
        for (text, hash) in [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_bd4c_8601_b7be), ("ab", 0x0832_6707_b4eb_37b8)] {
            assert_eq!(fnv1(text), hash, "{text}");
        }
    }

    #[test]
    fn a_role_is_known_by_its_last_segment() {
        assert_eq!((last_segment("team/nodes"), last_segment("nodes")), ("nodes", "nodes"));
    }
}
