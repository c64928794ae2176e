//! EC2NodeClasses of `v1beta1`.

use super::{Subject, Work, text};
use crate::{
    api,
    manifest::Fault,
    yaml::{Data, Yaml},
};

/// Families that have an alias.
const ALIASES: [(&str, &str); 5] = [
    ("AL2", "al2@latest"),
    ("AL2023", "al2023@latest"),
    ("Bottlerocket", "bottlerocket@latest"),
    ("Windows2019", "windows2019@latest"),
    ("Windows2022", "windows2022@latest"),
];

impl Work<'_> {
    pub(super) fn node_class(&mut self, root: &mut Yaml, subject: &Subject) {
        self.version(root, api::AWS, subject);
        self.images(root, subject);
        self.hop_limit(root, subject);
        if root.take("status").is_some() {
            self.changed(subject, "status is left out; the autoscaler writes it anew");
        }
    }

    fn images(&mut self, root: &mut Yaml, subject: &Subject) {
        let Some(family) = root.text_at(&["spec", "amiFamily"]).map(str::to_owned) else {
            let what = "amiFamily is missing, which v1beta1 requires: write the family, such as AL2023, then convert again";
            return self.refuse(subject, root, &["spec"], Fault::Rule(what.to_owned()));
        };
        if family == "Ubuntu" {
            let what = "v1 has no Ubuntu family: write amiFamily: AL2 (the same user data) and choose the images in amiSelectorTerms, \
                        by id or by name and owner, then convert again";
            return self.refuse(subject, root, &["spec", "amiFamily"], Fault::Rule(what.to_owned()));
        }
        if !root.at(&["spec", "amiSelectorTerms"]).map(Yaml::items).unwrap_or_default().is_empty() {
            return;
        }
        let Some((_, alias)) = ALIASES.iter().find(|(name, _)| *name == family) else {
            let what = format!("family {family} has no images of its own: write amiSelectorTerms, then convert again");
            return self.refuse(subject, root, &["spec", "amiFamily"], Fault::Rule(what));
        };
        let Some(spec) = root.child("spec") else { return };
        spec.take("amiFamily");
        spec.take("amiSelectorTerms");
        let mut term = Yaml::mapping();
        term.set("alias", Yaml::text(alias));
        spec.set("amiSelectorTerms", Yaml { line: 0, data: Data::Sequence(vec![term]) });
        self.changed(
            subject,
            &format!("spec.amiFamily: {family} is now amiSelectorTerms with alias {alias}; pin a version for production"),
        );
        if family == "AL2" {
            self.changed(subject, "AL2 images end with Kubernetes 1.32; move to al2023@latest before 1.33");
        }
    }

    /// The default fell from 2 to 1; what ran before is kept.
    fn hop_limit(&mut self, root: &mut Yaml, subject: &Subject) {
        if !text(root, &["spec", "metadataOptions", "httpPutResponseHopLimit"]).is_empty() {
            return;
        }
        if let Some(options) = root.child("spec").and_then(|s| s.child("metadataOptions")) {
            options.set("httpPutResponseHopLimit", Yaml::plain("2"));
        }
        self.changed(
            subject,
            "spec.metadataOptions.httpPutResponseHopLimit is now written as 2, the default of v1beta1; that of v1 is 1, \
             which keeps pods from the instance's credentials: set 1 if no pod needs them",
        );
    }
}
