//! The machine images that a class names: what EC2 says of them, and which of them are taken.
//!
//! What must not enter: calls to SSM (that is `parameters`), and which instance type boots what.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::{
    primitives::{DateTime, DateTimeFormat},
    types,
};
use whittle_model::{
    Operator, Requirement, Requirements, Timestamp,
    ec2_node_class::{AmiRequirement, AmiSelectorTerm},
    keys,
};

use super::{
    lookup::Ask,
    resolved::Ami,
    selector::{Queries, Query, tag_filters, tag_words},
};
use crate::{Aws, CloudError, image::Variant};

const PAGE: i32 = 1000;
/// Public images of anybody match a name: without a word of its owner only one's own and Amazon's are taken.
const TRUSTED_OWNERS: [&str; 2] = ["self", "amazon"];

/// An image as EC2 describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) name: String,
    /// `amd64` or `arm64`.
    pub(super) arch: &'static str,
    pub(super) created: Option<Timestamp>,
    pub(super) deprecated: Option<Timestamp>,
}

/// What the images of an alias are made for, by image id.
pub(super) type Variants = BTreeMap<String, BTreeSet<Variant>>;

/// The questions that terms other than an alias stand for. `parameters` holds what the parameters of terms came to,
/// by the term's place in the list.
pub(super) fn queries(terms: &[AmiSelectorTerm], parameters: &BTreeMap<usize, String>) -> Vec<Query> {
    let mut queries = Queries::new("amiSelectorTerms", "image-id", "");
    for (at, term) in terms.iter().enumerate() {
        if let Some(id) = &term.id {
            queries.id(at, id);
        } else if let Some(path) = &term.ssm_parameter {
            if let Some(id) = parameters.get(&at) {
                queries.id_for(format!("amiSelectorTerms[{at}] (ssmParameter {path}, which is {id})"), id);
            }
        } else if term.alias.is_none() {
            described(&mut queries, at, term);
        }
    }
    queries.build()
}

/// A term of name, tags and owner.
fn described(queries: &mut Queries, at: usize, term: &AmiSelectorTerm) {
    let tags = term.tags.clone().unwrap_or_default();
    let mut filters = tag_filters(&tags);
    let mut words = Vec::new();
    if let Some(name) = &term.name {
        filters.insert(0, ("name".to_owned(), vec![name.clone()]));
        words.push(format!("name {name}"));
    }
    if !tags.is_empty() {
        words.push(tag_words(&tags));
    }
    let owners: Vec<String> = match (&term.owner, &term.name) {
        (Some(owner), _) => vec![owner.clone()],
        (None, Some(_)) => TRUSTED_OWNERS.map(str::to_owned).to_vec(),
        (None, None) => Vec::new(),
    };
    if !owners.is_empty() {
        words.push(format!("owner {}", owners.join(" or ")));
    }
    if !words.is_empty() {
        queries.other(at, &words.join(", "), filters, owners);
    }
}

/// The question for images known by id.
pub(super) fn query_of_ids(words: &str, ids: impl Iterator<Item = String>) -> Vec<Query> {
    let mut queries = Queries::new("amiSelectorTerms", "image-id", "");
    for id in ids {
        queries.id_for(format!("{words}, which is {id}"), &id);
    }
    queries.build()
}

impl Ask for Image {
    async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Self>, CloudError> {
        ask(aws, query).await
    }

    fn handles(&self) -> [&str; 2] {
        [&self.id, ""]
    }
}

/// Images of architectures that no instance type of ours has are left out.
async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Image>, CloudError> {
    let available = types::Filter::builder().name("state").values("available").build();
    let filters: Vec<types::Filter> = query.filters().into_iter().chain([available]).collect();
    let owners = Some(query.owners.clone()).filter(|owners| !owners.is_empty());
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let request = aws
            .ec2
            .describe_images()
            .set_filters(Some(filters.clone()))
            .set_owners(owners.clone())
            .include_deprecated(true)
            .max_results(PAGE)
            .set_next_token(token.take());
        let page = aws.call("DescribeImages", "that the class selects", || request.clone().send()).await?;
        found.extend(page.images().iter().filter_map(image_of));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(found);
        }
    }
}

fn image_of(answer: &types::Image) -> Option<Image> {
    Some(Image {
        id: answer.image_id()?.to_owned(),
        name: answer.name().unwrap_or_default().to_owned(),
        arch: match answer.architecture()?.as_str() {
            "x86_64" => "amd64",
            "arm64" => "arm64",
            _ => return None,
        },
        created: answer.creation_date().and_then(time),
        deprecated: answer.deprecation_time().and_then(time),
    })
}

fn time(text: &str) -> Option<Timestamp> {
    DateTime::from_str(text, DateTimeFormat::DateTime).ok()?.to_millis().ok().map(Timestamp)
}

/// Of the images made for the same instance types the newest, a deprecated one only where there is no other; the
/// newest of all first.
pub(super) fn choose(found: &[Image], variants: &Variants, now: Timestamp) -> Vec<Ami> {
    let mut best: BTreeMap<Requirements, Ami> = BTreeMap::new();
    for image in found {
        for requirements in requirements(image, variants) {
            let ami = Ami {
                id: image.id.clone(),
                name: image.name.clone(),
                deprecated: image.deprecated.is_some_and(|since| since <= now),
                created: image.created,
                requirements: requirements.clone(),
            };
            let rank = |ami: &Ami| (!ami.deprecated, ami.created, ami.name.clone(), ami.id.clone());
            if best.get(&requirements).is_none_or(|other| rank(other) < rank(&ami)) {
                best.insert(requirements, ami);
            }
        }
    }
    let mut all: Vec<Ami> = best.into_values().collect();
    all.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.id.cmp(&b.id)));
    all
}

/// The sets of instance types an image is made for: one for each of its variants.
fn requirements(image: &Image, variants: &Variants) -> Vec<Requirements> {
    let arch = Requirement::any_of(keys::ARCH, &[image.arch]);
    let of = |variant: &Variant| variant.requirements().iter().filter_map(requirement).chain([arch.clone()]).collect::<Requirements>();
    match variants.get(&image.id) {
        Some(variants) if !variants.is_empty() => variants.iter().map(of).collect(),
        Some(_) | None => vec![[arch].into_iter().collect()],
    }
}

fn requirement(written: &AmiRequirement) -> Option<Requirement> {
    Requirement::new(&written.key, Operator::parse(&written.operator)?, written.values.as_deref().unwrap_or_default()).ok()
}

#[cfg(test)]
#[path = "../../tests_unit/class_images.rs"]
mod tests;
