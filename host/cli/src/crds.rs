//! `whittle crds`: the definitions of the kinds, as YAML. What must not enter: what they say.

use std::io::Write;
use std::path::Path;

use whittle_cluster::crd;

use crate::args::Crds;
use crate::failure::{End, Failure};

/// Writes all definitions to `out`, or one file each into the directory that is named.
///
/// # Errors
/// When the directory cannot be made or a file in it cannot be written.
pub fn run(args: &Crds, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    match &args.dir {
        Some(dir) => to_files(dir, err)?,
        None => {
            for crd in crd::all() {
                writeln!(out, "---")?;
                out.write_all(crd.yaml().as_bytes())?;
            }
        }
    }
    Ok(End::Done)
}

fn to_files(dir: &Path, err: &mut dyn Write) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |why| Failure::Save { path, why }
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    for crd in crd::all() {
        let path = dir.join(&crd.file);
        std::fs::write(&path, crd.yaml()).map_err(failed(&path))?;
        writeln!(err, "{}", path.display())?;
    }
    Ok(())
}
