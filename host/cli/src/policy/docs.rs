//! `whittle policy list`: the policies that are shipped, in their own words.

use std::io::{self, Write};

use serde_json::Value;
use whittle_policy::Module;

use super::source::Modules;
use crate::failure::{End, Failure};
use crate::out::{FAINT, HEAD, styled, wrapped};

/// Lists all, or tells everything about one.
///
/// # Errors
/// When none has the name.
pub fn run(name: Option<&str>, out: &mut dyn Write) -> Result<End, Failure> {
    let modules = Modules::new()?;
    match name {
        Some(name) => one(&modules.builtin(name).map_err(Failure::Usage)?, out)?,
        None => all(&modules, out)?,
    }
    Ok(End::Done)
}

fn all(modules: &Modules, out: &mut dyn Write) -> Result<(), Failure> {
    for builtin in whittle_builtin::ALL {
        let module = modules.builtin(builtin.name).map_err(Failure::Usage)?;
        let manifest = module.manifest();
        let line = format!("{:<12} {:<7} {}", manifest.name, manifest.version, first_sentence(&manifest.documentation));
        for part in wrapped(&line, 2, 23) {
            writeln!(out, "{part}")?;
        }
    }
    let hint = "whittle policy list NAME tells how one is configured; a ScoringPolicy takes it as spec.module.builtin";
    writeln!(out, "\n{}", styled(FAINT, hint))?;
    Ok(())
}

/// The first sentence of some Markdown, without headings.
#[must_use]
pub fn first_sentence(markdown: &str) -> String {
    let text = markdown.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with('#'));
    let paragraph = text.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    paragraph[..end].to_owned()
}

fn one(module: &Module, out: &mut dyn Write) -> io::Result<()> {
    let manifest = module.manifest();
    writeln!(out, "{}", styled(HEAD, &format!("{} {}", manifest.name, manifest.version)))?;
    writeln!(out, "\n{}\n", manifest.documentation.trim())?;
    writeln!(out, "{}", styled(HEAD, "Configuration (JSON schema)"))?;
    schema(&manifest.schema, out)
}

/// A schema, indented.
///
/// # Errors
/// When it cannot be written.
pub fn schema(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    writeln!(out, "{value:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_stands_for_the_whole() {
        assert_eq!(first_sentence("# Name\n\nDoes this. And that.\n"), "Does this.");
        assert_eq!(first_sentence("Does\nthis. And\nthat."), "Does this.");
        assert_eq!(first_sentence("# Only a heading"), "");
    }
}
