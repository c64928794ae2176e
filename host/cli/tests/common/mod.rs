//! Runs the command line and keeps what it said.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run said.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub exit: Option<i32>,
}

/// The project's root, which the command line is run in.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `whittle` with these arguments.
pub fn whittle(args: &[&str]) -> Answer {
    with_input(args, "")
}

/// Runs `whittle` with these arguments and this standard input.
pub fn with_input(args: &[&str], input: &str) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_whittle"))
        .args(args)
        .current_dir(root())
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cargo has built the binary");
    // A run that fails early does not read all of it.
    let _ = child.stdin.take().expect("standard input is a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the child is waited for once");
    Answer {
        stdout: String::from_utf8(output.stdout).expect("answers are text"),
        stderr: String::from_utf8(output.stderr).expect("errors are text"),
        exit: output.status.code(),
    }
}

/// A directory that is gone when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    /// With these files, one name and text each.
    pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("whittle-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        for (file, text) in files {
            std::fs::write(path.join(file), text).expect("the temporary directory is writable");
        }
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("the path is made of text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const POOL: &str = "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      requirements:
        - key: karpenter.sh/capacity-type
          operator: In
          values: [\"on-demand\"]
        - key: karpenter.k8s.aws/instance-family
          operator: In
          values: [\"c7i\"]
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: default
";

pub const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: work
spec:
  containers:
    - name: main
      image: pause
      resources:
        requests:
          cpu: 1
";
