//! NodePools and NodeClaims of `v1beta1`.

use super::{Kubelet, Subject, Work, text};
use crate::{api, yaml::Yaml};

impl Work<'_> {
    pub(super) fn node_pool(&mut self, root: &mut Yaml, subject: &Subject) {
        self.version(root, api::KARPENTER, subject);
        self.do_not_disrupt(root, &["spec", "template", "metadata", "annotations"], subject);
        self.claim_spec(root, &["spec", "template", "spec"], subject);
        self.disruption(root, subject);
        if root.take("status").is_some() {
            self.changed(subject, "status is left out; the autoscaler writes it anew");
        }
    }

    pub(super) fn node_claim(&mut self, root: &mut Yaml, subject: &Subject) {
        self.version(root, api::KARPENTER, subject);
        self.claim_spec(root, &["spec"], subject);
    }

    /// What pool templates and claims have in common: the class and the kubelet.
    fn claim_spec(&mut self, root: &mut Yaml, at: &[&str], subject: &Subject) {
        let path = at.join(".");
        let Some(spec) = root.at_mut(at) else { return };
        let mut changes = Vec::new();
        if let Some(class) = spec.get_mut("nodeClassRef") {
            let group = class.take("apiVersion").and_then(|v| v.as_text().map(str::to_owned));
            let group = group.as_deref().and_then(|v| v.split_once('/')).map_or(api::AWS_GROUP, |(group, _)| group).to_owned();
            if class.get("group").is_none() {
                class.set("group", Yaml::text(&group));
                changes.push(format!("{path}.nodeClassRef: apiVersion is now group: {group}"));
            }
            if class.get("kind").is_none() {
                class.set("kind", Yaml::text(api::NODE_CLASS_KIND));
                changes.push(format!("{path}.nodeClassRef: kind is required and is now {}", api::NODE_CLASS_KIND));
            }
        }
        let class = text(spec, &["nodeClassRef", "name"]);
        if let Some(settings) = spec.take("kubelet").filter(|k| !k.entries().is_empty()) {
            changes.push(format!("{path}.kubelet moved to EC2NodeClass {class}"));
            // A claim is a copy of its pool's template, whose settings are placed.
            if at.len() > 1 {
                self.kubelets.push(Kubelet { pool: subject.name.clone(), class, settings });
            }
        }
        for change in changes {
            self.changed(subject, &change);
        }
    }

    fn disruption(&mut self, root: &mut Yaml, subject: &Subject) {
        let mut changes = Vec::new();
        let Some(spec) = root.child("spec") else { return };
        let expire = spec.at_mut(&["disruption"]).and_then(|d| d.take("expireAfter"));
        if let Some(expire) = expire
            && let Some(template) = spec.child("template").and_then(|t| t.child("spec"))
        {
            template.set("expireAfter", expire);
            changes.push(
                "spec.disruption.expireAfter moved to spec.template.spec.expireAfter; expired nodes now drain at once, \
                 without waiting for budgets or a replacement"
                    .to_owned(),
            );
        }
        if let Some(disruption) = spec.child("disruption") {
            let only_empty = text(disruption, &["consolidationPolicy"]) == "WhenEmpty";
            if !only_empty {
                let was = disruption.text_at(&["consolidationPolicy"]).map_or("absent", |_| "WhenUnderutilized");
                disruption.set("consolidationPolicy", Yaml::text("WhenEmptyOrUnderutilized"));
                changes.push(format!("spec.disruption.consolidationPolicy was {was} and is now WhenEmptyOrUnderutilized"));
            }
            if !only_empty && disruption.get("consolidateAfter").is_none_or(Yaml::is_null) {
                disruption.set("consolidateAfter", Yaml::text("0s"));
                changes.push("spec.disruption.consolidateAfter is required and is now 0s, which is what v1beta1 did".to_owned());
            }
        }
        for change in changes {
            self.changed(subject, &change);
        }
    }
}
