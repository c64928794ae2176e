//! Karpenter's `v1beta1` manifests into `v1`: the same behaviour in the newer words, and a list of
//! what changed. Other documents of a file pass unchanged.
//!
//! The tree is changed and written anew, so comments and the layout are lost; the list says so.

mod node_class;
mod node_pool;

use crate::{
    api,
    manifest::{Fault, ManifestError, Problem, judge_kind, syntax_problem},
    yaml::{self, Document, Path, Yaml},
};

/// A converted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The documents, separated by `---`.
    pub yaml: String,
    /// What changed, one line each, and `to do by hand: ...` for what could not be done here.
    pub changes: Vec<String>,
}

/// The `v1` form of a file. `file` is the name told in faults.
///
/// # Errors
/// Text that is no YAML, kinds from before `v1beta1`, and settings that `v1` does not have.
pub fn to_v1(text: &str, file: &str) -> Result<Converted, ManifestError> {
    let (documents, error) = yaml::parse(text);
    let mut work = Work { file, changes: Vec::new(), problems: Vec::new(), kubelets: Vec::new() };
    let numbers: Vec<usize> = documents.iter().map(|d| d.number).collect();
    let mut roots: Vec<Yaml> = documents.into_iter().map(|Document { root, .. }| root).collect();
    for (number, root) in numbers.iter().zip(&mut roots) {
        for_each_object(root, &mut |object| work.object(*number, object));
    }
    work.place_kubelets(&mut roots);
    work.problems.extend(error.map(|error| syntax_problem(error, file)));
    if !work.problems.is_empty() {
        return Err(ManifestError { problems: work.problems });
    }
    if !work.changes.is_empty() && text.lines().any(|line| line.trim_start().starts_with('#') || line.contains(" #")) {
        work.changes.push("comments are not carried over; copy those you want to keep".to_owned());
    }
    let written: Vec<String> = roots.iter().map(yaml::emit).collect();
    Ok(Converted { yaml: written.join("---\n"), changes: work.changes })
}

/// The object of a document, or the items of a list.
fn for_each_object(root: &mut Yaml, f: &mut dyn FnMut(&mut Yaml)) {
    if root.text_at(&["kind"]).is_some_and(|kind| kind.ends_with("List"))
        && let Some(items) = root.get_mut("items")
    {
        items.items_mut().iter_mut().for_each(f);
    } else {
        f(root);
    }
}

/// Kubelet settings that a pool had, on their way to its class.
struct Kubelet {
    pool: String,
    class: String,
    settings: Yaml,
}

struct Work<'a> {
    file: &'a str,
    changes: Vec<String>,
    problems: Vec<Problem>,
    kubelets: Vec<Kubelet>,
}

/// The object at hand: where it stands, and what it is called.
struct Subject {
    document: usize,
    name: String,
}

impl Work<'_> {
    fn object(&mut self, document: usize, root: &mut Yaml) {
        let (api_version, kind) = (text(root, &["apiVersion"]), text(root, &["kind"]));
        let subject = Subject { document, name: format!("{kind} {}", text(root, &["metadata", "name"])) };
        match (api_version.as_str(), kind.as_str()) {
            ("karpenter.sh/v1beta1", "NodePool") => self.node_pool(root, &subject),
            ("karpenter.sh/v1beta1", "NodeClaim") => self.node_claim(root, &subject),
            ("karpenter.k8s.aws/v1beta1", "EC2NodeClass") => self.node_class(root, &subject),
            (group, _) if group.starts_with("karpenter.") => {
                if let Some(fault) = judge_kind(&api_version, &kind) {
                    self.refuse(&subject, root, &["apiVersion"], fault);
                }
            }
            (_, _) => self.pod_annotations(root, &subject),
        }
    }

    fn changed(&mut self, subject: &Subject, what: &str) {
        self.changes.push(format!("{}: {what}", subject.name));
    }

    fn refuse(&mut self, subject: &Subject, root: &Yaml, keys: &[&str], fault: Fault) {
        let path = Path::of(keys);
        self.problems.push(Problem {
            file: self.file.to_owned(),
            document: subject.document,
            line: root.line_of(&path),
            object: subject.name.clone(),
            field: path.to_string(),
            fault,
        });
    }

    fn version(&mut self, root: &mut Yaml, to: &str, subject: &Subject) {
        let from = text(root, &["apiVersion"]);
        root.set("apiVersion", Yaml::text(to));
        self.changed(subject, &format!("apiVersion: {from} is now {to}"));
    }

    /// Annotations of workloads whose old names Karpenter no longer reads.
    fn pod_annotations(&mut self, root: &mut Yaml, subject: &Subject) {
        for at in [&["metadata", "annotations"][..], &["spec", "template", "metadata", "annotations"]] {
            self.do_not_disrupt(root, at, subject);
        }
    }

    fn do_not_disrupt(&mut self, root: &mut Yaml, at: &[&str], subject: &Subject) {
        const NOW: &str = "karpenter.sh/do-not-disrupt";
        let Some(annotations) = root.at_mut(at) else { return };
        for old in ["karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate"] {
            let Some(value) = annotations.take(old) else { continue };
            if annotations.get(NOW).is_none() {
                annotations.set(NOW, value);
            }
            self.changes.push(format!("{}: {}: annotation {old} is now {NOW}", subject.name, at.join(".")));
        }
    }

    /// Gives each class of the file the kubelet settings that its pools had.
    fn place_kubelets(&mut self, roots: &mut [Yaml]) {
        let kubelets = std::mem::take(&mut self.kubelets);
        let mut classes: Vec<&str> = kubelets.iter().map(|k| k.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let of_class: Vec<&Kubelet> = kubelets.iter().filter(|k| k.class == class).collect();
            let agreed = of_class.iter().all(|k| yaml::emit(&k.settings) == yaml::emit(&of_class[0].settings));
            let mut placed = false;
            if agreed {
                for root in roots.iter_mut() {
                    for_each_object(root, &mut |object| placed |= set_kubelet(object, class, &of_class[0].settings));
                }
            }
            let pools: Vec<&str> = of_class.iter().map(|k| k.pool.as_str()).collect();
            let pools = pools.join(", ");
            if placed {
                self.changes.push(format!("EC2NodeClass {class}: spec.kubelet is what {pools} had in spec.template.spec.kubelet"));
                continue;
            }
            let why = if agreed { "which is not in this file" } else { "and they differ: give each pool a class of its own" };
            self.changes.push(format!("to do by hand: kubelet settings of {pools} belong to spec.kubelet of EC2NodeClass {class}, {why}:"));
            for one in of_class {
                let settings = yaml::emit(&one.settings);
                self.changes.extend(settings.lines().map(|line| format!("  {}:   {line}", one.pool)));
            }
        }
    }
}

/// Sets the kubelet settings when `object` is the class of this name and has none of its own.
fn set_kubelet(object: &mut Yaml, class: &str, settings: &Yaml) -> bool {
    let right = text(object, &["apiVersion"]) == api::AWS
        && text(object, &["kind"]) == api::NODE_CLASS_KIND
        && text(object, &["metadata", "name"]) == class;
    if !right || object.at(&["spec", "kubelet"]).is_some() {
        return false;
    }
    if let Some(spec) = object.child("spec") {
        spec.set("kubelet", settings.clone());
    }
    true
}

fn text(root: &Yaml, keys: &[&str]) -> String {
    root.text_at(keys).unwrap_or_default().to_owned()
}
