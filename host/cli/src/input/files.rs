//! The files of a directory, or standard input as one file.

use std::io::Read;
use std::path::{Path, PathBuf};

use whittle_cluster::yaml::closest;
use whittle_sim::{Story, StoryError, Verb};

use crate::failure::Failure;

/// A file of manifests.
#[derive(Debug, Clone)]
pub struct File {
    /// As a story names it: relative to the directory.
    pub name: String,
    /// As faults name it: as reached from where the program was started.
    pub shown: String,
    /// What it holds.
    pub text: String,
}

/// The files of a directory.
#[derive(Debug, Clone)]
pub struct Files {
    dir: PathBuf,
    /// Ordered by name; files that only a story names come last.
    pub manifests: Vec<File>,
    /// The story, when there is one.
    pub story: Option<String>,
}

impl Files {
    /// Reads every file of `dir` that ends in `.yaml` or `.yml`, and `story`; of `-` standard input,
    /// of a file that file.
    ///
    /// # Errors
    /// When something cannot be read or there are no manifests.
    pub fn read(dir: &Path) -> Result<Self, Failure> {
        let failed = |why| Failure::Read { path: dir.to_owned(), why };
        let mut files = Self { dir: dir.to_owned(), manifests: Vec::new(), story: None };
        if dir == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
            files.manifests.push(File { name: "-".to_owned(), shown: "standard input".to_owned(), text });
            return Ok(files);
        }
        if dir.is_file() {
            dir.parent().unwrap_or(Path::new("")).clone_into(&mut files.dir);
            let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.add(name)?;
            return Ok(files);
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_manifest = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") && !path.is_dir();
            names.extend(path.file_name().filter(|_| is_manifest).map(|name| name.to_string_lossy().into_owned()));
        }
        names.sort();
        if names.is_empty() {
            return Err(Failure::NoManifests(dir.to_owned()));
        }
        for name in names {
            files.add(name)?;
        }
        files.story = Some(dir.join("story")).filter(|path| path.is_file()).map(|path| text(&path)).transpose()?;
        Ok(files)
    }

    /// Reads files that a story names and that stand elsewhere, such as in a folder below.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn add_named(&mut self, story: &Story) -> Result<(), Failure> {
        for line in &story.lines {
            let Verb::Apply(names) = &line.verb else { continue };
            for name in names {
                if self.manifests.iter().any(|file| file.name == *name) {
                    continue;
                }
                if !self.dir.join(name).is_file() {
                    let why = match closest(name, self.manifests.iter().map(|file| file.name.as_str())) {
                        Some(meant) => format!("there is no file {name}; did you mean {meant}?"),
                        None => format!("there is no file {name} in the directory"),
                    };
                    return Err(self.in_story(&StoryError { number: line.number, text: line.text.clone(), why }));
                }
                self.add(name.clone())?;
            }
        }
        Ok(())
    }

    /// A fault of the story, with the path of its file.
    #[must_use]
    pub fn in_story(&self, error: &StoryError) -> Failure {
        Failure::Usage(format!("{}:{}: cannot read {:?}: {}", self.dir.join("story").display(), error.number, error.text, error.why))
    }

    fn add(&mut self, name: String) -> Result<(), Failure> {
        let path = self.dir.join(&name);
        self.manifests.push(File { text: text(&path)?, shown: path.to_string_lossy().into_owned(), name });
        Ok(())
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|why| Failure::Read { path: path.to_owned(), why })
}
