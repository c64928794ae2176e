//! What can be wrong with a file, told so that the reader can mend it.

/// Everything wrong with a file (or with several that were read together).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct ManifestError {
    /// In the order of the file; never empty.
    pub problems: Vec<Problem>,
}

impl ManifestError {
    fn lines(&self) -> String {
        let lines: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// One thing wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file as the caller names it.
    pub file: String,
    /// Number of the document in the file, from 1.
    pub document: usize,
    /// Line in the file, from 1.
    pub line: usize,
    /// Kind and name of the object, such as `NodePool default`; empty when it has neither.
    pub object: String,
    /// Path of the field, such as `spec.weight`; empty for the object as a whole.
    pub field: String,
    /// What is wrong.
    pub fault: Fault,
}

impl std::fmt::Display for Problem {
    /// `pool.yaml:12: document 2, NodePool default, spec.weight: wants a whole number, ...`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: document {}", self.file, self.line, self.document)?;
        for part in [&self.object, &self.field] {
            if !part.is_empty() {
                write!(f, ", {part}")?;
            }
        }
        write!(f, ": {}", self.fault)
    }
}

/// The kinds of faults. Each text says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// The document is no object of Kubernetes.
    #[error("{0}")]
    NoObject(String),
    /// The kind does not exist in its group.
    #[error("{0}")]
    UnknownKind(String),
    /// The kind exists, but not in this version.
    #[error("{0}")]
    WrongVersion(String),
    /// The kind has no such field.
    #[error("{0}")]
    UnknownField(String),
    /// The value has another shape than the field.
    #[error("{0}")]
    WrongType(String),
    /// The value breaks a rule of the API.
    #[error("{0}")]
    Rule(String),
    /// The object names another that is not there.
    #[error("{0}")]
    Reference(String),
}
