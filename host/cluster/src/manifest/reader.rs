//! Text into located objects. Every document is read, so that all faults are told at once.

use k8s_openapi::api::{
    apps::v1 as apps, batch::v1 as batch, core::v1 as core, policy::v1 as policy, scheduling::v1 as scheduling, storage::v1 as storage,
};
use serde::de::DeserializeOwned;
use whittle_model::{Labels, NodePool};

use super::{
    Fault, Located, ManifestError, Object, Problem,
    kinds::{self, Role},
};
use crate::{
    api, from,
    from::{Cx, NodeClassObject},
    hash,
    yaml::{self, Data, Path, SyntaxError, Yaml},
};

/// What is done about fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// They are faults, but in objects that a server has written (they carry a uid).
    Strict,
    /// They are left unread.
    Lenient,
}

/// Reads every object of a file, lists flattened, in the order of the file. `file` is the name told
/// in faults.
///
/// # Errors
/// Every fault of the file, each with document, line and field.
pub fn read(text: &str, file: &str, strictness: Strictness) -> Result<Vec<Located<Object>>, ManifestError> {
    let mut reader = Reader { file, strictness, objects: Vec::new(), problems: Vec::new() };
    let (documents, error) = yaml::parse(text);
    for document in &documents {
        reader.document(document.number, &document.root, None);
    }
    reader.problems.extend(error.map(|error| syntax_problem(error, file)));
    reader.problems.sort_by_key(|problem| (problem.document, problem.line));
    if reader.problems.is_empty() { Ok(reader.objects) } else { Err(ManifestError { problems: reader.problems }) }
}

/// A syntax error as a problem of `file`.
pub(crate) fn syntax_problem(error: SyntaxError, file: &str) -> Problem {
    Problem {
        file: file.to_owned(),
        document: error.document,
        line: error.line,
        object: String::new(),
        field: String::new(),
        fault: Fault::Syntax(error.what),
    }
}

struct Reader<'a> {
    file: &'a str,
    strictness: Strictness,
    objects: Vec<Located<Object>>,
    problems: Vec<Problem>,
}

/// The object being read.
struct Subject<'a> {
    document: usize,
    root: &'a Yaml,
    name: String,
    strict: bool,
}

impl Reader<'_> {
    /// Reads a document or an item of a list; items of a typed list may leave out what they are.
    fn document(&mut self, document: usize, root: &Yaml, typed: Option<(&str, &str)>) {
        let api_version = root.text_at(&["apiVersion"]).or(typed.map(|(version, _)| version));
        let kind = root.text_at(&["kind"]).or(typed.map(|(_, kind)| kind));
        let live = root.text_at(&["metadata", "uid"]).is_some();
        let subject = Subject { document, root, name: name_of(kind, root), strict: self.strictness == Strictness::Strict && !live };
        let (Some(api_version), Some(kind)) = (api_version, kind) else {
            let fault = no_object(root, api_version, kind);
            return self.fault(&subject, &Path::default(), root.line, fault);
        };
        if let Some(item_kind) = kinds::list_items(kind) {
            return self.list(document, root, &subject, (api_version, item_kind));
        }
        match kinds::role(api_version, kind) {
            Ok(role) => self.object(role, api_version, kind, live, &subject),
            Err(fault) => {
                let key = if matches!(fault, Fault::UnknownKind(_)) { "kind" } else { "apiVersion" };
                let path = Path::of(&[key]);
                self.fault(&subject, &path, root.line_of(&path), fault);
            }
        }
    }

    fn list(&mut self, document: usize, root: &Yaml, subject: &Subject<'_>, (api_version, kind): (&str, &str)) {
        let items = root.get("items");
        if items.is_none_or(|i| !i.is_null() && !matches!(i.data, Data::Sequence(_))) {
            let fault = Fault::WrongType("a list of objects needs items: a list, possibly empty".to_owned());
            return self.fault(subject, &Path::of(&["items"]), root.line, fault);
        }
        let typed = (!kind.is_empty()).then_some((api_version, kind));
        for item in items.map(Yaml::items).unwrap_or_default() {
            // Lists do not nest; a list within a list is read as an object and refused as one.
            self.document(document, item, typed);
        }
    }

    fn object(&mut self, role: Role, api_version: &str, kind: &str, live: bool, subject: &Subject<'_>) {
        let mut cx = Cx::new(live);
        let skipped = || Object::Skipped {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: subject.name.split_once(' ').map(|(_, name)| name.to_owned()).unwrap_or_default(),
        };
        let object = match role {
            Role::Skip => Some(skipped()),
            Role::Unsupported => {
                cx.unsupported.push(format!("kind {kind}"));
                Some(skipped())
            }
            Role::NodePool => self.typed::<api::NodePool>(subject).map(|o| Object::NodePool(Box::new(hashed_pool(&o, &mut cx)))),
            Role::NodeClass => self.typed::<api::EC2NodeClass>(subject).map(|o| Object::NodeClass(Box::new(hashed_class(&o, &mut cx)))),
            Role::NodeClaim => self.typed::<api::NodeClaim>(subject).map(|o| Object::NodeClaim(Box::new(from::node_claim(&o, &mut cx)))),
            Role::Node => self.typed::<core::Node>(subject).map(|o| Object::Node(Box::new(from::node(&o, &mut cx)))),
            Role::Pod => self.typed::<core::Pod>(subject).map(|o| Object::Pod(Box::new(from::pod(&o, &mut cx)))),
            Role::DaemonSet => self.typed::<apps::DaemonSet>(subject).map(|o| Object::DaemonSet(Box::new(from::daemon_set(&o, &mut cx)))),
            Role::Deployment | Role::StatefulSet | Role::ReplicaSet | Role::ReplicationController | Role::Job => {
                self.workload(role, subject, &mut cx)
            }
            Role::DisruptionBudget => {
                self.typed::<policy::PodDisruptionBudget>(subject).map(|o| Object::DisruptionBudget(from::disruption_budget(&o, &mut cx)))
            }
            Role::VolumeClaim
            | Role::Volume
            | Role::StorageClass
            | Role::VolumeLimits
            | Role::VolumeAttachment
            | Role::LimitRange
            | Role::PodTemplate
            | Role::NodeOverlay => self.fact(role, subject, &mut cx),
            Role::CapacityBuffer => {
                self.typed::<api::CapacityBuffer>(subject).map(|o| Object::CapacityBuffer(Box::new(from::capacity_buffer(&o, &mut cx))))
            }
            Role::PriorityClass => {
                self.typed::<scheduling::PriorityClass>(subject).map(|o| Object::PriorityClass(from::priority_class(&o, &mut cx)))
            }
            Role::Namespace => self.typed::<core::Namespace>(subject).map(|o| Object::Namespace(from::namespace(&o, &mut cx))),
            Role::ScoringPolicy => {
                self.typed::<api::ScoringPolicy>(subject).map(|o| Object::ScoringPolicy(Box::new(from::scoring_policy(&o, &mut cx))))
            }
        };
        self.finish(object, cx, subject);
    }

    fn workload(&mut self, role: Role, subject: &Subject<'_>, cx: &mut Cx) -> Option<Object> {
        let workload = match role {
            Role::StatefulSet => self.typed::<apps::StatefulSet>(subject).map(|o| from::stateful_set(&o, cx)),
            Role::ReplicaSet => self.typed::<apps::ReplicaSet>(subject).map(|o| from::replica_set(&o, cx)),
            Role::ReplicationController => self.typed::<core::ReplicationController>(subject).map(|o| from::replication_controller(&o, cx)),
            Role::Job => self.typed::<batch::Job>(subject).map(|o| from::job(&o, cx)),
            Role::Deployment
            | Role::NodePool
            | Role::NodeClass
            | Role::NodeClaim
            | Role::Node
            | Role::Pod
            | Role::DaemonSet
            | Role::DisruptionBudget
            | Role::VolumeClaim
            | Role::Volume
            | Role::StorageClass
            | Role::VolumeLimits
            | Role::VolumeAttachment
            | Role::LimitRange
            | Role::NodeOverlay
            | Role::CapacityBuffer
            | Role::PodTemplate
            | Role::PriorityClass
            | Role::Namespace
            | Role::ScoringPolicy
            | Role::Skip
            | Role::Unsupported => self.typed::<apps::Deployment>(subject).map(|o| from::deployment(&o, cx)),
        };
        workload.map(|w| Object::Workload(Box::new(w)))
    }

    /// Kinds that pods and nodes refer to.
    fn fact(&mut self, role: Role, subject: &Subject<'_>, cx: &mut Cx) -> Option<Object> {
        match role {
            Role::VolumeClaim => {
                self.typed::<core::PersistentVolumeClaim>(subject).map(|o| Object::VolumeClaim(Box::new(from::volume_claim(&o, cx))))
            }
            Role::Volume => self.typed::<core::PersistentVolume>(subject).map(|o| Object::Volume(Box::new(from::volume(&o, cx)))),
            Role::StorageClass => {
                self.typed::<storage::StorageClass>(subject).map(|o| Object::StorageClass(Box::new(from::storage_class(&o, cx))))
            }
            Role::VolumeLimits => {
                self.typed::<storage::CSINode>(subject).map(|o| Object::VolumeLimits(Box::new(from::volume_limits(&o, cx))))
            }
            Role::VolumeAttachment => self
                .typed::<storage::VolumeAttachment>(subject)
                .map(|o| Object::VolumeAttachment(Box::new(from::volume_attachment(&o, cx)))),
            Role::LimitRange => self.typed::<core::LimitRange>(subject).map(|o| Object::LimitRange(Box::new(from::limit_range(&o, cx)))),
            Role::PodTemplate => {
                self.typed::<core::PodTemplate>(subject).map(|o| Object::PodTemplate(Box::new(from::pod_template(&o, cx))))
            }
            Role::NodeOverlay
            | Role::CapacityBuffer
            | Role::NodePool
            | Role::NodeClass
            | Role::NodeClaim
            | Role::Node
            | Role::Pod
            | Role::Deployment
            | Role::StatefulSet
            | Role::ReplicaSet
            | Role::ReplicationController
            | Role::Job
            | Role::DaemonSet
            | Role::DisruptionBudget
            | Role::PriorityClass
            | Role::Namespace
            | Role::ScoringPolicy
            | Role::Skip
            | Role::Unsupported => {
                self.typed::<api::NodeOverlay>(subject).map(|o| Object::NodeOverlay(Box::new(from::node_overlay(&o, cx))))
            }
        }
    }

    /// The object as its API type. A mismatch is told and leaves nothing.
    fn typed<T: DeserializeOwned>(&mut self, subject: &Subject<'_>) -> Option<T> {
        let reading = yaml::read::<T>(subject.root);
        if subject.strict {
            for unknown in reading.unknown {
                self.fault(subject, &unknown.path, unknown.line, Fault::UnknownField(unknown.what));
            }
        }
        match reading.value {
            Ok(value) => Some(value),
            Err(mismatch) => {
                self.fault(subject, &mismatch.path, mismatch.line, Fault::WrongType(mismatch.what));
                None
            }
        }
    }

    fn finish(&mut self, object: Option<Object>, cx: Cx, subject: &Subject<'_>) {
        for (path, what) in cx.problems {
            let line = subject.root.line_of(&path);
            self.fault(subject, &path, line, Fault::Rule(what));
        }
        let Some(object) = object else { return };
        let unsupported = match &object {
            Object::Pod(pod) => pod.unsupported.clone(),
            Object::Workload(workload) => [cx.unsupported, workload.template.unsupported.clone()].concat(),
            Object::DaemonSet(set) => set.template.unsupported.clone(),
            Object::PodTemplate(template) => template.unsupported.clone(),
            Object::NodePool(_)
            | Object::NodeClass(_)
            | Object::NodeClaim(_)
            | Object::Node(_)
            | Object::DisruptionBudget(_)
            | Object::VolumeClaim(_)
            | Object::Volume(_)
            | Object::StorageClass(_)
            | Object::VolumeLimits(_)
            | Object::VolumeAttachment(_)
            | Object::LimitRange(_)
            | Object::NodeOverlay(_)
            | Object::CapacityBuffer(_)
            | Object::PriorityClass(_)
            | Object::Namespace(_)
            | Object::ScoringPolicy(_)
            | Object::Skipped { .. } => cx.unsupported,
        };
        self.objects.push(Located {
            file: self.file.to_owned(),
            document: subject.document,
            line: subject.root.line,
            name: subject.name.clone(),
            object,
            unsupported,
            not_acted_on: cx.not_acted_on,
        });
    }

    fn fault(&mut self, subject: &Subject<'_>, path: &Path, line: usize, fault: Fault) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            document: subject.document,
            line,
            object: subject.name.clone(),
            field: path.to_string(),
            fault,
        });
    }
}

/// Kind and name of an object, as far as it has them.
/// A pool with the hash of its template, which the controller writes on a live one.
fn hashed_pool(written: &api::NodePool, cx: &mut Cx) -> NodePool {
    let mut pool = from::node_pool(written, cx);
    let hash = || hash::node_pool_hash(written);
    stamp(&mut pool.annotations, cx.live, (hash::NODE_POOL_HASH, hash), (hash::NODE_POOL_HASH_VERSION, hash::NODE_POOL_VERSION));
    pool
}

/// A class with the hash of its spec, which the controller writes on a live one.
fn hashed_class(written: &api::EC2NodeClass, cx: &mut Cx) -> NodeClassObject {
    let mut object = from::node_class(written, cx);
    let hash = || hash::node_class_hash(written, None);
    stamp(&mut object.class.annotations, cx.live, (hash::NODE_CLASS_HASH, hash), (hash::NODE_CLASS_HASH_VERSION, hash::NODE_CLASS_VERSION));
    object
}

fn stamp(annotations: &mut Labels, live: bool, (key, hash): (&str, impl Fn() -> String), (version, number): (&str, &str)) {
    if !live || !annotations.contains_key(key) {
        annotations.insert(key.to_owned(), hash());
        annotations.insert(version.to_owned(), number.to_owned());
    }
}

fn name_of(kind: Option<&str>, root: &Yaml) -> String {
    let name = root.text_at(&["metadata", "name"]).or(root.text_at(&["metadata", "generateName"]));
    let namespace = root.text_at(&["metadata", "namespace"]);
    let full = match (namespace, name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (None, Some(name)) => name.to_owned(),
        (_, None) => String::new(),
    };
    let parts: Vec<&str> = [kind.unwrap_or(""), &full].into_iter().filter(|p| !p.is_empty()).collect();
    parts.join(" ")
}

fn no_object(root: &Yaml, api_version: Option<&str>, kind: Option<&str>) -> Fault {
    let entries = root.entries();
    let misspelt = |key: &str| entries.iter().map(|e| e.key.as_str()).find(|k| yaml::closest(k, [key]).is_some());
    Fault::NoObject(match (api_version, kind) {
        _ if entries.is_empty() => "this is no Kubernetes object: it needs apiVersion, kind and metadata.name".to_owned(),
        (None, Some(kind)) => match (misspelt("apiVersion"), kinds::api_version_of(kind)) {
            (Some(written), _) => format!("apiVersion is missing; {written} was probably meant so"),
            (None, right) if right.is_empty() => "apiVersion is missing: write the group and version of this kind".to_owned(),
            (None, right) => format!("apiVersion is missing: for {kind} write apiVersion: {right}"),
        },
        (Some(_), None) => match misspelt("kind") {
            Some(written) => format!("kind is missing; {written} was probably meant so"),
            None => "kind is missing: write the kind of this object, such as kind: NodePool".to_owned(),
        },
        (_, _) => "this is no Kubernetes object: apiVersion and kind are missing".to_owned(),
    })
}
