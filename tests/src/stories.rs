//! Stories: a directory of manifests with a `story`, told to the command line, and the `golden`
//! answer it must give to the byte. What happens inside is not known here: only words in, words out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tree::relative;

/// A directory that holds a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Where it is, relative to the project's root, which the command line is run in.
    pub dir: String,
    /// The arguments: those of the file `command` with `DIR` for the directory, else
    /// `simulate DIR`; and those of the file `args`.
    pub args: Vec<String>,
    /// The exit code it must end with: the file `exit`, else 0.
    pub exit: i32,
    /// The answer it must give; `None` when there is no golden yet.
    pub golden: Option<String>,
}

/// What a run said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; -1 when a signal ended it.
    pub exit: i32,
}

/// The stories right below `folder`: directories with a `story`, a `command` or a `golden`.
///
/// # Errors
/// When a folder or file cannot be read, or `exit` is no number.
pub fn stories(root: &Path, folder: &str) -> io::Result<Vec<Story>> {
    let mut found = Vec::new();
    let folder = root.join(folder);
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if ["story", "command", "golden"].iter().any(|file| path.join(file).is_file()) {
            found.push(read(root, &path)?);
        }
    }
    found.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(found)
}

fn read(root: &Path, path: &Path) -> io::Result<Story> {
    let text = |name: &str| match fs::read_to_string(path.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    };
    let dir = relative(root, path);
    let command = text("command")?.unwrap_or_else(|| "simulate DIR".to_owned());
    let words = command + " " + &text("args")?.unwrap_or_default();
    let args = words.split_whitespace().map(|word| word.replace("DIR", &dir)).collect();
    let exit = text("exit")?.map_or(Ok(0), |code| code.trim().parse()).map_err(io::Error::other)?;
    Ok(Story { dir, args, exit, golden: text("golden")? })
}

/// Builds the command line as the tests were built and says where it is.
///
/// # Errors
/// When cargo cannot be run, fails, or names no executable.
pub fn build_command_line(root: &Path) -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With the whole workspace's features, as `cargo test --workspace` builds it: nothing is built twice.
    let args = ["build", "--quiet", "--workspace", "--bin", "whittle", "--message-format", "json-render-diagnostics"];
    let built = Command::new(cargo).args(args).current_dir(root).stdin(Stdio::null()).output()?;
    if !built.status.success() {
        return Err(io::Error::other(format!("building whittle failed: {}", String::from_utf8_lossy(&built.stderr))));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    executable.ok_or_else(|| io::Error::other("building whittle named no executable"))
}

/// Builds the policy whose crate lies in the story's folder `policy`, if there is one.
///
/// # Errors
/// When the command line cannot be started, or the policy does not build.
pub fn build_policy(binary: &Path, root: &Path, story: &Story) -> io::Result<()> {
    let folder = format!("{}/policy", story.dir);
    if !root.join(&folder).join("Cargo.toml").is_file() {
        return Ok(());
    }
    let built = Command::new(binary).args(["policy", "build", &folder]).current_dir(root).stdin(Stdio::null()).output()?;
    if built.status.success() { Ok(()) } else { Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned())) }
}

/// Tells the story to the command line at `binary`.
///
/// # Errors
/// When it cannot be started or answers other than text.
pub fn tell(binary: &Path, root: &Path, story: &Story) -> io::Result<Answer> {
    let told = Command::new(binary).args(&story.args).current_dir(root).env_remove("COLUMNS").stdin(Stdio::null()).output()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(io::Error::other);
    Ok(Answer { stdout: text(told.stdout)?, stderr: text(told.stderr)?, exit: told.status.code().unwrap_or(-1) })
}

/// Where an answer parts from what was wanted, with the lines around; `None` when they are equal.
#[must_use]
pub fn difference(wanted: &str, got: &str) -> Option<String> {
    if wanted == got {
        return None;
    }
    let (wanted, got): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), got.lines().collect());
    let same = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[&str], sign: char| {
        let end = lines.len().min(same + 3);
        lines[same.min(end)..end].iter().map(|line| format!("\n  {sign} {line}")).collect::<String>()
    };
    Some(format!("line {}:{}{}", same + 1, shown(&wanted, '-'), shown(&got, '+')))
}

/// What is wrong with an answer, told twice; empty when it is right.
#[must_use]
pub fn judge(story: &Story, first: &Answer, second: &Answer) -> Vec<String> {
    let mut wrong = Vec::new();
    if first.exit != story.exit {
        wrong.push(format!("exit code {}, not {}: {}", first.exit, story.exit, first.stderr.trim_end()));
    }
    match &story.golden {
        None => wrong.push("no golden answer: UPDATE_GOLDENS=1 writes one".to_owned()),
        Some(golden) => wrong.extend(difference(golden, &first.stdout).map(|where_| format!("not the golden answer, {where_}"))),
    }
    if first != second {
        wrong.push(format!("two runs differ, {}", difference(&first.stdout, &second.stdout).unwrap_or_default()));
    }
    wrong.into_iter().map(|what| format!("{}: {what}", story.dir)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stdout: &str, exit: i32) -> Answer {
        Answer { stdout: stdout.to_owned(), stderr: "why\n".to_owned(), exit }
    }

    fn story(golden: Option<&str>) -> Story {
        Story { dir: "examples/a".to_owned(), args: Vec::new(), exit: 0, golden: golden.map(str::to_owned) }
    }

    #[test]
    fn a_right_answer_is_silent_and_each_wrong_one_is_named() {
        let right = answer("one\ntwo\n", 0);
        assert_eq!(judge(&story(Some("one\ntwo\n")), &right, &right), [""; 0]);
        for (golden, first, second, what) in [
            (Some("one\n2\n"), right.clone(), right.clone(), "not the golden answer, line 2:\n  - 2\n  + two"),
            (Some("one\ntwo\nthree\n"), right.clone(), right.clone(), "not the golden answer, line 3:\n  - three"),
            (None, right.clone(), right.clone(), "no golden answer: UPDATE_GOLDENS=1 writes one"),
            (Some("one\ntwo\n"), answer("one\ntwo\n", 1), answer("one\ntwo\n", 1), "exit code 1, not 0: why"),
            (Some("one\ntwo\n"), right.clone(), answer("one\n2\n", 0), "two runs differ, line 2:\n  - two\n  + 2"),
        ] {
            assert_eq!(judge(&story(golden), &first, &second), [format!("examples/a: {what}")]);
        }
    }

    #[test]
    fn a_directory_says_how_it_is_told() {
        let root = std::env::temp_dir().join(format!("whittle-stories-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("examples/b/story", "until settled\n");
        write("examples/b/args", "--seed 7\n--json\n");
        write("examples/b/exit", "3\n");
        write("examples/a/command", "explain DIR web-0\n");
        write("examples/a/golden", "because\n");
        write("examples/c/pod.yaml", "kind: Pod\n");
        let found = stories(&root, "examples").unwrap();
        let none = stories(&root, "tests/stories").unwrap();
        fs::remove_dir_all(&root).unwrap();
        let told: Vec<(String, i32, Option<&str>)> = found.iter().map(|s| (s.args.join(" "), s.exit, s.golden.as_deref())).collect();
        assert_eq!(
            told,
            [("explain examples/a web-0".to_owned(), 0, Some("because\n")), ("simulate examples/b --seed 7 --json".to_owned(), 3, None)]
        );
        assert_eq!(none, []);
    }
}
