//! The objects of all files, as a story applies and changes them.

use whittle_cluster::{Located, Object, Strictness, link, manifest, yaml, yaml::Yaml};
use whittle_sim::{Manifests, ObjectName, ScenarioObject};

use super::catalogs::Catalogs;
use super::files::Files;
use super::{objects, path};

/// All objects that were read.
#[derive(Debug)]
pub struct Library {
    entries: Vec<Entry>,
    catalogs: Catalogs,
    /// Policies at the end of every NodePool's chain.
    everywhere: String,
}

#[derive(Debug)]
struct Entry {
    /// The file as a story names it.
    file: String,
    /// As read.
    written: (Located<Object>, Yaml),
    /// As changed by the story since it was applied.
    live: (Located<Object>, Yaml),
}

impl Library {
    /// Of objects read from these files; every NodePool's chain of policies ends with `everywhere`.
    #[must_use]
    pub fn new(files: &Files, objects: Vec<Located<Object>>, catalogs: Catalogs, everywhere: String) -> Self {
        let mut entries = Vec::new();
        for file in &files.manifests {
            let trees = trees(&file.text);
            for located in objects.iter().filter(|located| located.file == file.shown) {
                let tree = trees.iter().find(|tree| tree.line == located.line).cloned();
                let both = (located.clone(), tree.unwrap_or_else(Yaml::mapping));
                entries.push(Entry { file: file.name.clone(), written: both.clone(), live: both });
            }
        }
        Self { entries, catalogs, everywhere }
    }

    /// The objects of a file as written.
    ///
    /// # Errors
    /// When no catalogue can be made for a node class.
    pub fn objects_of(&mut self, file: &str) -> Result<Vec<ScenarioObject>, String> {
        let mut all = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.file == file) {
            entry.live = entry.written.clone();
            let (located, tree) = &entry.written;
            all.extend(objects::scenario(&located.object, tree, &self.catalogs, &self.everywhere)?);
        }
        Ok(all)
    }
}

impl Manifests for Library {
    fn load(&mut self, file: &str) -> Result<Vec<ScenarioObject>, String> {
        self.objects_of(file)
    }

    fn set(&mut self, object: &ObjectName, path: &str, value: &str) -> Result<Vec<ScenarioObject>, String> {
        let at = self.entries.iter().position(|entry| objects::name(&entry.live.0.object).as_ref() == Some(object));
        let at = at.ok_or_else(|| format!("no file holds {object}"))?;
        let (located, mut tree) = self.entries[at].live.clone();
        path::put(&mut tree, &path::parse(path)?, value_of(value)?)?;
        let name = format!("{object} with {path}={value}");
        let mut changed = manifest::read(&yaml::emit(&tree), &name, Strictness::Strict).map_err(|error| error.to_string())?;
        let mut all: Vec<Located<Object>> = self.entries.iter().map(|entry| entry.live.0.clone()).collect();
        let changed = changed.pop().filter(|_| changed.is_empty()).ok_or_else(|| format!("{name} is no object any more"))?;
        if let Some(field) = changed.refused().iter().find(|field| !located.refused().contains(field)) {
            return Err(format!("{name}: {field} would change where pods run and is not acted on yet"));
        }
        all[at] = Located { file: located.file, document: located.document, line: located.line, ..changed };
        // Priorities are resolved anew: the class may be what was changed.
        let all = link(all).map_err(|error| error.to_string())?;
        for (entry, located) in self.entries.iter_mut().zip(all) {
            entry.live.0 = located;
        }
        self.entries[at].live.1 = tree;
        let (located, tree) = &self.entries[at].live;
        Ok(objects::scenario(&located.object, tree, &self.catalogs, &self.everywhere)?.into_iter().collect())
    }
}

/// What stands behind `=`: any YAML value.
fn value_of(text: &str) -> Result<Yaml, String> {
    let (mut documents, error) = yaml::parse(text);
    match (documents.pop(), error) {
        (Some(document), None) if documents.is_empty() => Ok(document.root),
        (None, None) => Ok(Yaml::plain("null")),
        (_, Some(error)) => Err(format!("{text:?} is no value: {}", error.what)),
        (Some(_), None) => Err(format!("{text:?} is more than one value")),
    }
}

/// The trees of all objects of a text; those of a list one by one.
fn trees(text: &str) -> Vec<Yaml> {
    let mut all = Vec::new();
    for document in yaml::parse(text).0 {
        let is_list = document.root.text_at(&["kind"]).is_some_and(|kind| kind.ends_with("List"));
        match document.root.get("items").filter(|_| is_list) {
            Some(items) => all.extend(items.items().iter().cloned()),
            None => all.push(document.root),
        }
    }
    all
}
