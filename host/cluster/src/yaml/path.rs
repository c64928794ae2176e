//! Where in a document a value stands.

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Into the value of a key.
    Key(String),
    /// Into an item of a list (from 0).
    Index(usize),
}

/// A chain of steps from the root of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The steps.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Steps down.
    pub fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Steps up.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// This path and one step more.
    #[must_use]
    pub fn join(&self, segment: Segment) -> Self {
        let mut longer = self.clone();
        longer.push(segment);
        longer
    }

    /// The path of these keys.
    #[must_use]
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|k| Segment::Key((*k).to_owned())).collect())
    }
}

impl From<Vec<Segment>> for Path {
    fn from(segments: Vec<Segment>) -> Self {
        Self(segments)
    }
}

impl std::fmt::Display for Path {
    /// `spec.containers[0].resources.limits["nvidia.com/gpu"]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.is_empty() || key.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_') => {
                    write!(f, "[{key:?}]")?;
                }
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}
