//! `whittle convert`: old manifests in, new ones out.

use std::io::{Read, Write};
use std::path::Path;

use whittle_cluster::convert::to_v1;

use crate::args::Convert;
use crate::failure::{End, Failure};
use crate::out::{FAINT, styled};

/// Writes the v1 manifests to `out` and what changed to `err`.
///
/// # Errors
/// When the file cannot be read, or holds what v1 does not have.
pub fn run(args: &Convert, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let path = &args.file;
    let failed = |why| Failure::Read { path: path.clone(), why };
    let mut text = String::new();
    let name = if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
        "standard input".to_owned()
    } else {
        text = std::fs::read_to_string(path).map_err(failed)?;
        path.display().to_string()
    };
    let converted = to_v1(&text, &name)?;
    out.write_all(converted.yaml.as_bytes())?;
    if converted.changes.is_empty() {
        writeln!(err, "{}", styled(FAINT, "nothing to change: there is no v1beta1 object of Karpenter's in it"))?;
    }
    for change in &converted.changes {
        writeln!(err, "{change}")?;
    }
    Ok(End::Done)
}
